// What one linter or generator has to say for itself.

/** Where the tools are: a folder with npm packages, a Python, and the jar of OpenAPI Generator. */
export type Tools = { readonly node: string; readonly python: string; readonly jar: string }
/** What one client works with. The folder is its own and empty at first. */
export type Place = {
  /** The OpenAPI document as a file. */
  readonly document: string
  readonly folder: string
  readonly tools: Tools
  /** What a journey is told: the server, and the key of an account of its own. */
  readonly env: { readonly BASE_URL: string; readonly API_KEY: string }
}
export type Stage = {
  readonly name: 'lint' | 'generate' | 'compile' | 'journey'
  /** Rejects with what was wrong. */
  run(place: Place): Promise<void>
}
export type Client = {
  readonly name: string
  /** Without one of these it is skipped. */
  readonly needs: readonly (keyof Tools)[]
  readonly stages: readonly Stage[]
}
