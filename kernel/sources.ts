// Where plugins come from: each folder of plugins/ with a plugin.ts whose default export is the plugin.
import { existsSync, readdirSync } from 'node:fs'
import type { Plugin } from './plugin.ts'

const home = new URL('../plugins/', import.meta.url)

export async function loadPlugins(): Promise<Plugin[]> {
  const names = readdirSync(home, { withFileTypes: true }).filter(entry => entry.isDirectory() && existsSync(new URL(`${entry.name}/plugin.ts`, home))).map(({ name }) => name).sort()
  return Promise.all(names.map(async name => ((await import(new URL(`${name}/plugin.ts`, home).href)) as { default: Plugin }).default))
}
