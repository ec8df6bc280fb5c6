// Renders the OpenAPI document as a page that loads nothing else: HTML and its style, no script.
import { defaultOf, html, prose, rows, target, typeOf } from './schema-rows.ts'
import type { Components, Schema } from './schema-rows.ts'
import { style } from './style.ts'

type Content = Record<
  string,
  { schema?: Schema; example?: unknown; examples?: Record<string, unknown> }
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

const table = (title: string, body: string) =>
  body ? `<h4>${title}</h4><table>${body}</table>` : ''

function parameterRows({ parameters }: Op, components: Components): string {
  return parameters
    .map(({ name, in: place, required, schema: written, description = '' }) => {
      const schema = target(written, components)
      return (
        `<tr><td><code>${html(name)}</code> ` +
        `<small>${place}${required ? '' : ', optional'}</small></td>` +
        `<td>${html(typeOf(schema))}</td><td>${prose(description + defaultOf(schema))}</td></tr>`
      )
    })
    .join('')
}
const example = (title: string, value: unknown) =>
  value === undefined
    ? ''
    : `<details><summary>${title}</summary><pre>` +
      `${html(typeof value === 'string' ? value : JSON.stringify(value, null, 2))}</pre></details>`

function answers({ responses }: Op, components: Components): string {
  const successes = Object.entries(responses).filter(([status]) => status < '400')
  return successes
    .map(([status, { description, content = {} }]) => {
      const [media, body] = Object.entries(content)[0] ?? []
      const fields = rows(body?.schema, components)
      const events = body?.schema?.contentSchema ? ' <a href="#events">Event types</a>' : ''
      return (
        `<h4>Answer ${html(status)} <small>${html(media ?? '')}</small></h4>` +
        (fields ? `<table>${fields}</table>` : `<p>${html(description)}.${events}</p>`) +
        example('Example', body?.example)
      )
    })
    .join('')
}
/** Its own error codes; what they mean stands once, in the table of all errors. */
function errors({ responses }: Op): string {
  const codes = Object.entries(responses)
    .filter(([status]) => status >= '400')
    .map(([status, { content }]) => {
      const own = Object.keys(content?.['application/json']?.examples ?? {})
      return `${html(status)} ${own.map(code => `<a href="#errors">${html(code)}</a>`).join(' ')}`
    })
  return `<details><summary>Errors</summary><p>${codes.join('<br>')}</p></details>`
}

function operation(path: string, verb: string, op: Op, components: Components): string {
  const body = op.requestBody?.content['application/json']
  const [scheme] = op.security.flatMap(one => Object.keys(one))
  const access = scheme === undefined ? 'public' : `${scheme === 'user' ? 'access' : scheme} token`
  return [
    `<section id="${html(op.operationId)}"><h3>${html(op.summary)}</h3>`,
    `<div class="path"><span class="open">${html(access)}</span>`,
    `<span class="verb">${verb.toUpperCase()}</span>${html(path)}</div>`,
    op.description ? `<p>${prose(op.description)}</p>` : '',
    `\n${table('Parameters', parameterRows(op, components))}`,
    `${table('Body', rows(body?.schema, components))}${example('Example', body?.example)}\n`,
    `${answers(op, components)}\n${errors(op)}</section>`,
  ].join('')
}

/** All error codes, with what each means and whether the same request is worth another try. */
function errorTable({ ApiError, ErrorCode }: Components): string {
  const known = Object.entries(ErrorCode?.['x-errors'] ?? {}).map(
    ([code, { status, retry, sentence }]) =>
      `<tr><td>${status} <code>${html(code)}</code></td>` +
      `<td>${retry ? 'worth a retry' : ''}</td><td>${html(sentence)}</td></tr>`,
  )
  return ApiError
    ? '<section id="errors"><h2>Errors</h2><p>Branch on <code>code</code>; the words of ' +
        '<code>detail</code> may change. Retry after the seconds of Retry-After, else after a ' +
        `pause that grows.</p><table>${rows(ApiError, {})}</table>` +
        `<table>${known.join('')}</table></section>`
    : ''
}

/** How to begin, above all operations. */
const beginning =
  '<pre>API=http://localhost:8080/api/v1\n' +
  'TOKEN=$(curl -s -X POST $API/auth/token -H "X-API-Key: sk_live_…" | jq -r .access_token)\n' +
  'RUN=$(curl -s $API/chat -H "Authorization: Bearer $TOKEN" -H "Content-Type: ' +
  'application/json" \\\n' +
  '      -d \'{"message":"Compare the two offers."}\' | jq -r .run_id)\n' +
  'curl -N $API/runs/$RUN/events -H "Authorization: Bearer $TOKEN"   # follow, or ask:\n' +
  'curl $API/runs/$RUN -H "Authorization: Bearer $TOKEN"</pre>' +
  '<p>An access token lasts 15 minutes. <a href="openapi.json">openapi.json</a></p>'

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
    '<h2>Errors</h2><a href="#errors">All error codes</a>',
    '<h2>Event types</h2>',
    ...types.map(([name]) => `<a href="#event-${html(name)}">${html(name)}</a>`),
    `</nav>\n<main><h1>${title} API</h1>`,
    ...document.info.description.split('\n\n').map(text => `<p>${prose(text)}</p>`),
    `${beginning}\n`,
    ...groups.flatMap(({ name, description, items }) => [
      `<h2>${html(name)}</h2><p>${prose(description)}</p>`,
      ...items.map(({ path, verb, op }) => operation(path, verb, op, components)),
    ]),
    `\n${errorTable(components)}`,
    '\n<h2 id="events">Event types</h2>',
    '<p>Sent by the event streams. Skip the types that you do not know.</p>',
    ...types.map(
      ([name, schema]) =>
        `<section id="event-${html(name)}"><h3><code>${html(name)}</code></h3>` +
        `<p>${prose(target(schema, components).description ?? '')}</p>` +
        `<table>${rows(schema, components)}</table></section>`,
    ),
    '</main></html>',
  ].join('')
}
