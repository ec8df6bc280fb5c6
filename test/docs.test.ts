// docs/extension-points/ and docs/settings.md are what the sources say now, leave nothing out that
// the running system knows, and say of everything what it is.
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SyntaxKind, type Node } from 'typescript/unstable/ast'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ports } from '../kernel/adapters.ts'
import * as kernel from '../kernel/index.ts'
import { loadPlugins } from '../kernel/loading/sources.ts'
import { helpOf } from '../kernel/cli/settings-help.ts'
import { extensionPages, folder } from './docs/pages.ts'
import { settingsFile, settingsPage } from './docs/settings.ts'
import { commentOf, home, openSources, pathOf, textOf } from './docs/source.ts'

const pages = await extensionPages()
const index = pages.get('README.md')!
const plugins = await loadPlugins()

test('what is committed is what the sources say', () => {
  const stale = [...new Set([...pages.keys(), ...readdirSync(join(home, folder))])].filter(
    name =>
      !pages.has(name) ||
      !readdirSync(join(home, folder)).includes(name) ||
      readFileSync(join(home, folder, name), 'utf8') !== pages.get(name),
  )
  assert.equal(stale, [], 'run: npm run docs')
})

test('the list of settings is what their schemas say', async () => {
  const page = await settingsPage()
  assert.is(readFileSync(join(home, settingsFile), 'utf8'), page, 'run: npm run docs')
  for (const { name, about } of helpOf(plugins)) {
    assert.is(page.split(`\n| \`${name}\` | `).length, 2, `${name} has one row`)
    assert.not.match(about, /^Rate limit "/, `${name} says what it bounds`)
  }
})

test('every point, service and port of the running system has its page', async () => {
  const modules = await Promise.all(
    globSync(['plugins/*/api.ts', 'ports/*.ts'], { cwd: home }).map(
      path => import(join(home, path)) as Promise<object>,
    ),
  )
  const exported = [kernel, ...modules]
    .flatMap(module => Object.values(module) as unknown[])
    .filter(
      (value): value is kernel.Token =>
        typeof value === 'object' && value !== null && 'kind' in value && 'id' in value,
    )
    .map(({ id }) => id)
  const served = plugins.flatMap(({ uses = {}, provides = {}, contributes = [] }) =>
    [...Object.values(uses), ...Object.values(provides)]
      .map(({ id }) => id)
      .concat(contributes.map(({ point }) => point)),
  )
  assert.ok(served.length > 20 && exported.length > 15, 'they are found')
  for (const id of new Set([...served, ...exported])) {
    assert.ok(index.includes(`\`${id}\``), `${id} is in the index`)
    assert.match(
      pages.get(`${id.replace(':', '-')}.md`) ?? '',
      /## Example\n\nFrom \[/,
      `${id} has a page with an example`,
    )
  }
  for (const port of ports)
    assert.ok(
      index.includes(`\`port:${port}\``) ||
        pages.get('adapter.md')!.includes(`## Port \`${port}\``),
      `the port ${port} is on a page`,
    )
})

test('every field that a plugin may have is on its page', () => {
  const page = pages.get('plugin.md')!
  for (const field of new Set(plugins.flatMap(plugin => Object.keys(plugin))))
    assert.match(page, new RegExp(`^### \`${field}\`\n\n\\S`, 'm'), field)
  for (const name of plugins.flatMap(({ commands = {}, jobs = {}, emits = {} }) =>
    [commands, jobs, emits].flatMap(Object.keys),
  ))
    assert.ok(page.includes(`\`${name}\``), `${name} is told as taken`)
})

test('every type and every call on a page has a comment', () => {
  const sources = openSources()
  const silent: string[] = []
  const say = (node: Node, what: string) =>
    void (commentOf(node).text === '' && silent.push(`${pathOf(node)} ${what}`))
  const tokens = [
    'kernel/plugin.ts',
    'kernel/kernel-ports.ts',
    ...sources.apis,
    ...sources.portFiles,
  ].flatMap(sources.tokensIn)
  for (const token of tokens) {
    if (token.comment.text === '') silent.push(`${token.file} ${token.exported}`)
    for (const type of sources.typesFrom([token.type])) {
      // A type may leave it to its members to say what it is.
      let spoken = false
      const visit = (node: Node): void => {
        if (node.kind === SyntaxKind.MethodSignature)
          say(node, `${type.name.text}.${textOf(node).split('(')[0]}`)
        spoken ||= commentOf(node).text !== ''
        node.forEachChild(visit)
      }
      visit(type.type)
      if (!spoken) say(type, type.name.text)
    }
  }
  sources.close()
  assert.equal([...new Set(silent)], [])
})

test('nothing on a page would be read as HTML', () => {
  for (const [name, text] of pages)
    assert.not.match(
      text
        .replace(/^<!--.*-->$/m, '')
        .replace(/^ *```[\s\S]*?^ *```$/gm, '')
        .replace(/`[^`\n]*`/g, ''),
      /<[\w/]/,
      name,
    )
})

test('links lead somewhere', () => {
  for (const [name, text] of pages)
    for (const [, target] of text.matchAll(/\]\(([^)]+)\)/g)) {
      const path = join(folder, target!)
      assert.ok(
        pages.has(target!) || globSync(path, { cwd: home }).length === 1,
        `${name}: ${target}`,
      )
    }
})

test.run()
