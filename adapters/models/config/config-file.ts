// The file that names several providers: its schema, and the name of a place in it for refusals.
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { readFileSync } from 'node:fs'
import { Type as t, type Static } from 'typebox'
import { fault } from '#contracts/faults.ts'
import { ModelEntry, PriceEntry } from '../lib/catalogue.ts'
import { concurrencyMax, timeoutBounds } from '../lib/endpoint.ts'

const exact = { additionalProperties: false }
const fileBytesMax = 1024 * 1024
const ProviderName = t.String({ pattern: '^[^\\p{C}]{1,64}$' })

/** `api_key` names a variable; `base_url` left out is the vendor's own. */
const Remote = {
  name: ProviderName,
  base_url: t.Optional(t.String({ maxLength: 2000 })),
  api_key: t.Optional(t.String({ maxLength: 128 })),
  concurrency: t.Optional(t.Integer({ minimum: 1, maximum: concurrencyMax })),
  timeout_ms: t.Optional(t.Integer({ minimum: timeoutBounds.min, maximum: timeoutBounds.max })),
  models: t.Array(ModelEntry, { minItems: 1 }),
}
/** Models that this repository contains. Each program has one model and knows its abilities. */
const BuiltIn = {
  name: ProviderName,
  models: t.Array(
    t.Object(
      {
        key: ModelEntry.properties.key,
        id: ModelEntry.properties.id,
        name: ModelEntry.properties.name,
        description: ModelEntry.properties.description,
        price: t.Optional(PriceEntry),
      },
      exact,
    ),
    { minItems: 1 },
  ),
}

const kinds = {
  openai: t.Object(
    {
      kind: t.Literal('openai'),
      api: t.Optional(t.Union([t.Literal('chat'), t.Literal('responses')])),
      ...Remote,
    },
    exact,
  ),
  anthropic: t.Object({ kind: t.Literal('anthropic'), ...Remote }, exact),
  offline: t.Object({ kind: t.Literal('offline'), ...BuiltIn }, exact),
  scripted: t.Object({ kind: t.Literal('scripted'), ...BuiltIn }, exact),
}
export type ProviderEntry = {
  [Kind in keyof typeof kinds]: Static<(typeof kinds)[Kind]>
}[keyof typeof kinds]
export type ConfigFile = { readonly providers: readonly ProviderEntry[]; readonly default: string }

const Outline = t.Object(
  {
    providers: t.Array(t.Object({ kind: t.Enum(Object.keys(kinds)) }), {
      minItems: 1,
      maxItems: 100,
    }),
    default: t.String(),
  },
  exact,
)

/** A path such as `providers[0].models[1].price.minimum`. */
const placeIn = (prefix: string, parts: readonly string[]): string =>
  parts.reduce(
    (place, part) =>
      /^\d+$/.test(part) ? `${place}[${part}]` : place === '' ? part : `${place}.${part}`,
    prefix,
  )
function refusalOf(prefix: string, { keyword, instancePath, params, message }: ErrorObject): Error {
  const parts = instancePath.split('/').slice(1)
  const extra =
    keyword === 'required'
      ? 'missingProperty'
      : keyword === 'additionalProperties'
        ? 'additionalProperty'
        : undefined
  if (extra !== undefined) parts.push(String(params[extra]))
  const why =
    keyword === 'required'
      ? 'is required'
      : keyword === 'additionalProperties'
        ? 'is not a known field'
        : keyword === 'enum'
          ? `must be one of ${(params['allowedValues'] as string[]).join(', ')}`
          : (message ?? 'is not valid')
  return fault('INVALID_FIELD', {
    field: placeIn(prefix, parts).slice(0, 200) || 'MODELS_URL',
    why,
  })
}

/** Throws INVALID_FIELD with the place in the file, never with the value there. */
export function readConfigFile(path: string): ConfigFile {
  const refuse = (why: string, cause?: unknown) =>
    fault('INVALID_FIELD', { field: 'MODELS_URL', why: `config: ${path} ${why}` }, { cause })
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw refuse(`cannot be read (${(cause as NodeJS.ErrnoException).code})`, cause)
  }
  if (text.length > fileBytesMax) throw refuse(`is larger than ${fileBytesMax} characters`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    // The parser's own message would quote the file.
    throw refuse('is not valid JSON')
  }
  const ajv = new Ajv2020({ strict: true, strictTypes: false })
  const check = (prefix: string, schema: object, part: unknown): void => {
    const valid = ajv.compile(schema)
    if (valid(part) !== true) throw refusalOf(prefix, valid.errors![0]!)
  }
  check('', Outline, value)
  const file = value as ConfigFile
  for (const [at, provider] of file.providers.entries())
    check(`providers[${at}]`, kinds[provider.kind], provider)
  return file
}
