// How long a provider asks its callers to wait, from the headers of its refusal.
import type { Clock } from '#ports/clock.ts'

/** The longest wait that a provider can ask for, in milliseconds. */
const waitMsMax = 3_600_000

const units: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** `1s`, `6m0s`, `120ms`, `1h2m3.5s`; a bare number counts seconds. */
function durationMs(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  if (!/^(\d+(\.\d+)?(ms|[smhd]))+$/.test(text)) return undefined
  return [...text.matchAll(/(\d{1,15}(?:\.\d{1,15})?)(ms|[smhd])/g)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * units[unit!]!,
    0,
  )
}
/** A date of RFC 9110 section 5.6.7, or of RFC 3339. */
function untilMs(text: string, now: number): number | undefined {
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/**
 * Headers in which OpenAI and Anthropic tell when a limit resets, and how much of it is left:
 * `…-requests`, `…-tokens`.
 */
const resets = [
  ...['requests', 'tokens'].map(what => ({
    reset: `x-ratelimit-reset-${what}`,
    remaining: `x-ratelimit-remaining-${what}`,
  })),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(what => ({
    reset: `anthropic-ratelimit-${what}-reset`,
    remaining: `anthropic-ratelimit-${what}-remaining`,
  })),
]

/**
 * Milliseconds to wait; undefined where the provider names no valid time. `Retry-After` (RFC 9110,
 * section 10.2.3) and `retry-after-ms` take precedence over the resets of used-up limits.
 */
export function retryAfterOf(headers: Headers, clock: Pick<Clock, 'now'>): number | undefined {
  const bounded = (ms: number | undefined): number | undefined =>
    ms === undefined || !Number.isFinite(ms) ? undefined : Math.min(Math.ceil(ms), waitMsMax)
  const exact = headers.get('retry-after-ms')?.trim() ?? ''
  if (/^\d+(\.\d+)?$/.test(exact)) return bounded(Number(exact))
  const after = headers.get('retry-after')?.trim() ?? ''
  if (after !== '') {
    const ms = durationMs(after) ?? untilMs(after, clock.now())
    if (ms !== undefined) return bounded(ms)
  }
  const waits = resets.flatMap(({ reset, remaining }) => {
    const text = headers.get(reset)?.trim() ?? ''
    const left = headers.get(remaining)?.trim() ?? '0'
    if (text === '' || Number(left) > 0) return []
    return durationMs(text) ?? untilMs(text, clock.now()) ?? []
  })
  return waits.length === 0 ? undefined : bounded(Math.max(...waits))
}
