// Renders the OpenAPI document as a page that loads nothing else: HTML and its style, no script.
type Schema = {
  type?: string | string[]
  format?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  items?: Schema
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  $ref?: string
  'x-ref'?: string
}
type Content = Record<
  string,
  { schema?: Schema; examples?: Record<string, { value: { detail: string } }> }
>
type Op = {
  summary: string
  description?: string
  tags: string[]
  operationId: string
  security: object[]
  parameters: {
    name: string
    in: string
    required: boolean
    schema: Schema
    description?: string
  }[]
  requestBody?: { content: Content }
  responses: Record<string, { description: string; content?: Content }>
}
type Document = {
  info: { title: string; version: string; description: string }
  tags?: { name: string; description: string }[]
  paths: Record<string, Record<string, Op>>
  components: { schemas: Record<string, Schema> }
}

const html = (text: unknown) => String(text).replace(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`)
/** Prose, in which backticks mark code. */
const prose = (text: unknown) => html(text).replace(/`([^`]+)`/g, '<code>$1</code>')

const style = `
:root {
  color-scheme: light dark;
  --line: light-dark(#ddd, #3a3a3a); --soft: light-dark(#f6f6f4, #222);
  --dim: light-dark(#666, #999); --accent: light-dark(#0a5fb4, #7ab8f5)
}
* { box-sizing: border-box }
body {
  margin: 0; font: 15px/1.55 system-ui, sans-serif;
  display: grid; grid-template-columns: 17rem minmax(0, 1fr)
}
nav {
  position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem;
  border-right: 1px solid var(--line); font-size: 13px
}
nav h2 {
  font-size: 12px; letter-spacing: .06em; text-transform: uppercase; color: var(--dim);
  margin: 1.2rem 0 .3rem
}
nav a {
  display: block; padding: .12rem 0; color: inherit; text-decoration: none;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis
}
nav a:hover { color: var(--accent) }
details { margin-top: .8rem; font-size: 13.5px }
main { max-width: 56rem; padding: 2rem 2.5rem 6rem }
section { border-top: 1px solid var(--line); padding: 1.6rem 0 }
h1 { margin: 0 }
h3 { margin: 0 0 .4rem; font-size: 1.05rem }
h4 { margin: 1rem 0 .3rem; font-size: 13px; color: var(--dim) }
code, .path { font: 13px/1.5 ui-monospace, monospace }
.path {
  display: block; background: var(--soft); border-radius: 6px; padding: .45rem .7rem;
  margin: .5rem 0; overflow-x: auto
}
.verb { font-weight: 700; color: var(--accent); margin-right: .6rem }
.open { float: right; color: var(--dim) }
table { width: 100%; border-collapse: collapse; font-size: 13.5px }
td {
  padding: .28rem .6rem .28rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere
}
td:first-child { width: 14rem }
td:nth-child(2) { width: 13rem; color: var(--dim) }
small { color: var(--dim) }
@media (max-width: 50rem) {
  body { display: block }
  nav { position: static; height: auto; border: 0 }
  main { padding: 1rem }
}`

type Components = Record<string, Schema>
const nameIn = ({ $ref = '' }: Schema) => $ref.split('/').at(-1)!
/** What a reference stands for. Its own description counts before that of its target. */
const target = (schema: Schema, components: Components): Schema =>
  schema.$ref ? { ...components[nameIn(schema)], ...schema, $ref: '' } : schema

function typeOf(schema: Schema): string {
  if (schema.$ref) return nameIn(schema)
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
  if (Array.isArray(schema.type))
    return schema.type
      .map(type => (type === 'null' ? type : typeOf({ ...schema, type })))
      .join(' | ')
  if (schema.type === 'array') return `${typeOf(schema.items ?? {})}[]`
  const bounds = [
    schema.minimum !== undefined && `≥ ${schema.minimum}`,
    schema.maximum !== undefined && `≤ ${schema.maximum}`,
    schema.minLength !== undefined && schema.minLength > 1 && `≥ ${schema.minLength} characters`,
    schema.maxLength !== undefined && `≤ ${schema.maxLength} characters`,
  ].filter(Boolean)
  return [
    schema['x-ref'] ? `${schema['x-ref']} id` : (schema.format ?? schema.type ?? 'any'),
    ...bounds,
  ].join(', ')
}

/** One row for each field, with nested fields indented below. */
function rows(given: Schema | undefined, components: Components, depth = 0): string {
  if (!given || depth > 4) return ''
  let schema = target(given, components)
  for (let lists = 0; schema.items; lists++) {
    if (lists > 4) return ''
    schema = target(schema.items, components)
  }
  return Object.entries(schema.properties ?? {})
    .map(([name, written]) => {
      const field = target(written, components)
      const notes = [
        field.description,
        field.default !== undefined && field.default !== ''
          ? `Default ${JSON.stringify(field.default)}.`
          : '',
      ]
        .filter(Boolean)
        .join(' ')
      const optional = schema.required?.includes(name) ? '' : ' <small>optional</small>'
      return (
        `<tr><td style="padding-left:${depth * 1.2}rem">` +
        `<code>${html(name)}</code>${optional}</td>` +
        `<td>${html(typeOf(field))}</td><td>${prose(notes)}</td></tr>` +
        rows(field, components, depth + 1)
      )
    })
    .join('')
}
const table = (title: string, body: string) =>
  body ? `<h4>${title}</h4><table>${body}</table>` : ''

function operation(path: string, verb: string, op: Op, components: Components): string {
  const parameters = op.parameters
    .map(
      ({ name, in: place, required, schema, description }) =>
        `<tr><td><code>${html(name)}</code> ` +
        `<small>${place}${required ? '' : ', optional'}</small></td>` +
        `<td>${html(typeOf(schema))}</td><td>${prose(description ?? '')}</td></tr>`,
    )
    .join('')
  const [[status, success] = ['', { description: '' }], ...others] = Object.entries(
    op.responses,
  ) as [string, Op['responses'][string]][]
  const errors = others.filter(([code]) => code >= '400')
  const [media, answer] = Object.entries(success.content ?? {})[0] ?? []
  const fields = rows(answer?.schema, components)
  const body = op.requestBody?.content['application/json']
  const access = op.security.length === 0 ? 'public' : 'Bearer token'
  const failures = errors.flatMap(([code, { content }]) =>
    Object.entries(content?.['application/json']?.examples ?? {}).map(
      ([name, { value }]) =>
        `<tr><td>${html(code)} <code>${html(name)}</code></td>` +
        `<td colspan="2">${html(value.detail)}</td></tr>`,
    ),
  )
  return [
    `<section id="${html(op.operationId)}"><h3>${html(op.summary)}</h3>`,
    `<div class="path"><span class="open">${access}</span>`,
    `<span class="verb">${verb.toUpperCase()}</span>${html(path)}</div>`,
    op.description ? `<p>${prose(op.description)}</p>` : '',
    `\n${table('Parameters', parameters)}${table('Body', rows(body?.schema, components))}\n`,
    `<h4>Answer ${html(status)} <small>${html(media ?? '')}</small></h4>`,
    fields ? `<table>${fields}</table>` : `<p>${html(success.description)}</p>`,
    `\n<details><summary>Errors: ${errors.map(([code]) => html(code)).join(', ')}</summary>`,
    `<table>${failures.join('')}</table></details></section>`,
  ].join('')
}

/** How to begin, above all operations. */
const beginning =
  '<p>Exchange an API key at <code>POST /api/v1/auth/token</code> (or sign in at ' +
  '<code>POST /api/v1/auth/login</code>) and send the access token as ' +
  '<code>Authorization: Bearer …</code>; it lasts 15 minutes. Start a run with ' +
  '<code>POST /api/v1/chat</code>, then read <code>GET /api/v1/runs/{run_id}/events</code>.</p>' +
  '<p><a href="openapi.json">openapi.json</a></p>'

export function pageOf(source: object): string {
  const document = source as Document
  const all = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, op]) => ({ path, verb, op })),
  )
  const groups = (document.tags ?? []).map(({ name, description }) => ({
    name,
    description,
    items: all.filter(({ op }) => op.tags[0] === name),
  }))
  const components = document.components.schemas
  const types = (components['RunEvent']?.oneOf ?? []).map(event => {
    const { type, data } = target(event, components).properties!
    return [String(type!.enum![0]), data!] as const
  })
  const title = html(document.info.title)
  const links = groups.flatMap(({ name, items }) => [
    `<h2>${html(name)}</h2>`,
    ...items.map(
      ({ path, verb, op }) =>
        `<a href="#${html(op.operationId)}" title="${html(path)}">${verb.toUpperCase()} ` +
        `${html(path.replace('/api/v1', ''))}</a>`,
    ),
  ])
  return [
    '<!doctype html><html lang="en"><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width">',
    `<title>${title} API</title><style>${style}</style>\n`,
    `<nav><strong>${title}</strong> <small>${html(document.info.version)}</small>`,
    ...links,
    '<h2>events</h2>',
    ...types.map(([name]) => `<a href="#event-${html(name)}">${html(name)}</a>`),
    `</nav>\n<main><h1>${title} API</h1><p>${prose(document.info.description)}</p>`,
    `${beginning}\n`,
    ...groups.flatMap(({ name, description, items }) => [
      `<h2>${html(name)}</h2><p>${prose(description)}</p>`,
      ...items.map(({ path, verb, op }) => operation(path, verb, op, components)),
    ]),
    '\n<h2>Event types</h2>',
    '<p>Sent by the event streams. Skip the types that you do not know.</p>',
    ...types.map(
      ([name, schema]) =>
        `<section id="event-${html(name)}"><h3><code>${html(name)}</code></h3>` +
        `<table>${rows(schema, components)}</table></section>`,
    ),
    '</main></html>',
  ].join('')
}
