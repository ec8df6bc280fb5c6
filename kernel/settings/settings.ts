// Every setting comes from the environment, twelve-factor style: the kernel's own list, and what
// each plugin adds to it.
import { readFileSync } from 'node:fs'
import type { Static, TSchema } from 'typebox'
import { fault } from '#contracts/faults.ts'
import type { HttpSettings } from '#ports/http.ts'
import type { Rate } from '#ports/limits.ts'
import { KernelSettings } from './kernel-settings.ts'
import type { Plugin } from '../plugin.ts'
import { createValidator } from '../validation/validate.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export type Settings = Static<typeof KernelSettings>

/** A setting, or an option of a command. */
type Property = TSchema & {
  readonly type?: string
  readonly description?: string
  readonly default?: unknown
  readonly 'x-env'?: string
  readonly 'x-operand'?: boolean
}
export const propertiesOf = (schema: TSchema | undefined) =>
  Object.entries(
    (schema as { properties?: Record<string, Property> } | undefined)?.properties ?? {},
  )
const snake = (name: string) => name.replace(/[^a-zA-Z0-9]+/g, '_').toUpperCase()

/**
 * The variable, or the content of the file that `<name>_FILE` names, trimmed. INVALID_FIELD when
 * the file cannot be read.
 */
export function valueIn(env: Environment, name: string): string | undefined {
  const file = env[`${name}_FILE`]
  if (!file) return env[name]
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      { field: `${name}_FILE`, why: `cannot be read (${(cause as NodeJS.ErrnoException).code})` },
      { cause },
    )
  }
}

/** The settings that are given; one without content is not. */
const givenIn = (env: Environment, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap(name => {
      const value = valueIn(env, name)
      return value ? [[name, value]] : []
    }),
  )

/** Reads and checks the kernel's settings. INVALID_FIELD names the setting. */
export function readSettings(env: Environment): Settings {
  const names = propertiesOf(KernelSettings).map(([name]) => name)
  const given = givenIn(env, names)
  const settings = createValidator().check('config', KernelSettings)(given) as Settings
  if (Boolean(settings.TLS_CERT) !== Boolean(settings.TLS_KEY))
    throw fault('INVALID_FIELD', { field: 'TLS_CERT', why: 'is needed together with TLS_KEY' })
  return settings
}

/** The HTTP server's part of the settings. */
export function httpSettings(settings: Settings): HttpSettings {
  const {
    TLS_CERT: cert,
    TLS_KEY: key,
    TLS_REDIRECT_PORT: redirectPort,
    TLS_REDIRECT_HOST: redirectHost,
  } = settings
  const unread = settings.HTTP_UNREAD_BYTES_MAX
  const unreadShare = Math.ceil(unread / 4)
  return {
    host: settings.HOST,
    port: settings.PORT,
    trustProxy: settings.TRUST_PROXY,
    streams: {
      total: settings.HTTP_STREAMS_MAX,
      perUser: settings.HTTP_STREAMS_PER_USER_MAX,
      perAddress: settings.HTTP_STREAMS_PER_ADDRESS_MAX,
    },
    bodies: {
      total: settings.HTTP_BODIES_MAX,
      perUser: settings.HTTP_BODIES_PER_USER_MAX,
      perAddress: settings.HTTP_BODIES_PER_ADDRESS_MAX,
    },
    unreadBytes: { total: unread, perUser: unreadShare, perAddress: unreadShare },
    bodyBytesPerSecondMin: settings.HTTP_BODY_BYTES_PER_SECOND_MIN,
    silenceMs: settings.HTTP_SILENCE_MS,
    headMs: settings.HTTP_HEAD_MS,
    corsOrigins: settings.CORS_ORIGINS.split(',')
      .map(origin => origin.trim())
      .filter(Boolean),
    ...(cert && key
      ? {
          tls: {
            cert,
            key,
            ...(redirectPort === undefined ? {} : { redirectPort }),
            ...(redirectHost === undefined ? {} : { redirectHost }),
          },
        }
      : {}),
  }
}

export const envName = (plugin: string, property: string, schema: { 'x-env'?: string }) =>
  schema['x-env'] ?? `${snake(plugin)}_${snake(property)}`

/**
 * Reads a plugin's config from its settings. Checks use the settings' names, so that an error names
 * what the operator set.
 */
export function readConfig(plugin: Plugin, env: Environment): object {
  const rows = propertiesOf(plugin.config).map(([property, schema]) => ({
    property,
    schema,
    name: envName(plugin.name, property, schema),
  }))
  const given = givenIn(
    env,
    rows.map(({ name }) => name),
  )
  if (!plugin.config) return given
  const { required = [] } = plugin.config as { required?: readonly string[] }
  const named = {
    ...plugin.config,
    properties: Object.fromEntries(rows.map(({ name, schema }) => [name, schema])),
    required: rows.filter(({ property }) => required.includes(property)).map(({ name }) => name),
  }
  const checked = createValidator().check('config', named)(given) as Record<string, unknown>
  return Object.fromEntries(
    rows.flatMap(({ property, name }) => (name in checked ? [[property, checked[name]]] : [])),
  )
}

const windows = new Map([
  [1000, 'SECOND'],
  [60_000, 'MINUTE'],
  [3_600_000, 'HOUR'],
] as const)
type RateSetting = {
  name: string
  setting: string
  part: 'perSecond' | 'burst' | 'count'
  value: number
}
/**
 * Each number of a rate is a setting: LIMITS_RUNS_PER_SECOND, LIMITS_RUNS_BURST,
 * LIMITS_TOKEN_PER_MINUTE.
 */
export function ratesOf(plugin: Plugin): RateSetting[] {
  return Object.entries(plugin.limits ?? {}).flatMap(([name, rate]): RateSetting[] => {
    const stem = `LIMITS_${snake(name)}`
    return 'count' in rate
      ? [
          {
            name,
            setting: `${stem}_PER_${windows.get(rate.perMs as 1000) ?? `${rate.perMs}_MS`}`,
            part: 'count',
            value: rate.count,
          },
        ]
      : [
          { name, setting: `${stem}_PER_SECOND`, part: 'perSecond', value: rate.perSecond },
          { name, setting: `${stem}_BURST`, part: 'burst', value: rate.burst },
        ]
  })
}

export function readRates(plugin: Plugin, env: Environment): Record<string, Rate> {
  const rates: Record<string, Record<string, number>> = Object.fromEntries(
    Object.entries(plugin.limits ?? {}).map(([name, { about: _, ...rate }]) => [name, rate]),
  )
  for (const { name, setting, part } of ratesOf(plugin)) {
    if (!env[setting]) continue
    const value = Number(env[setting])
    if (!Number.isFinite(value) || value <= 0)
      throw fault('INVALID_FIELD', { field: setting, why: 'must be a number above 0' })
    rates[name]![part] = value
  }
  return rates as Record<string, Rate>
}
