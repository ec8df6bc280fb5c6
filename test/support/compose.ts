// docker-compose.yml as a test reads it, with its anchors resolved.
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'

export type Service = {
  readonly image: string
  readonly command?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
  readonly profiles?: readonly string[]
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly healthcheck?: { readonly test: readonly string[] }
  readonly deploy?: { readonly replicas: number }
  readonly depends_on?: Readonly<Record<string, unknown>>
}
export type Compose = {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes: object
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

const home = resolve(import.meta.dirname, '../..')
export const readCompose = (): Compose =>
  parse(readFileSync(resolve(home, 'docker-compose.yml'), 'utf8'), { merge: true }) as Compose
