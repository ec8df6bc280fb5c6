// Runs a port's kit against an adapter by its URL: what holds, what cannot be asked of this adapter
// and why, what fails.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '#adapters/clock/system.ts'
import { fault } from '#contracts/faults.ts'
import type { Adapter } from '#ports/adapter.ts'
import { loadAdapter } from '../../../kernel/adapters.ts'
import { kits } from './checked-kits.ts'
import { placeholder, ridesOf, type Parts } from './checked-place.ts'

export type Checked = {
  readonly check: string
  readonly result: 'holds' | 'unsupported' | 'fails'
  readonly detail: string
}
export type Report = {
  readonly ok: boolean
  readonly holds: number
  readonly unsupported: number
  readonly fails: number
  readonly checks: readonly Checked[]
}
/** A check that takes longer has failed, in milliseconds. */
const checkMsMax = 60_000
export const checkable = Object.keys(kits)
/** An assertion says below its first line what was there and what was expected. */
const sentenceOf = (error: unknown) =>
  (error instanceof Error ? error.message : String(error))
    .split('\n')
    .map(line => line.trim())
    .filter(Boolean)
    .slice(0, 2)
    .join(' ')
/** Nothing that one check leaves there can be met by another. */
const keepsNothing = ['models', 'clock', 'mail']

/** What is kept must not be met by another check. `{ field }` is where the URL came from. */
function requireOwnPlaces(
  { port, ephemeral, needs = [] }: Adapter,
  url: string,
  field: string,
): void {
  const isBare = /^[a-z0-9+]+:(?:\?|$)/.test(url)
  if (
    ephemeral ||
    keepsNothing.includes(port) ||
    url.includes(placeholder) ||
    (isBare && needs.length > 0)
  )
    return
  throw fault('INVALID_FIELD', {
    field,
    why: `names one place for all checks; write ${placeholder} where each has its own`,
  })
}

type Asked = {
  readonly port: string
  /**
   * Holds `{n}` where each check needs a place of its own (`couch://host/kit_{n}`); an adapter that
   * keeps nothing needs none.
   */
  readonly url: string
  /**
   * What it rides on, instead of the embedded adapters in memory: `storage=sqlite:/tmp/{n}.db`,
   * several with spaces between them.
   */
  readonly on?: string | undefined
  /** Where the letters that a mailer sent arrive as .eml files; `{n}` in it as in the URL. */
  readonly letters?: string | undefined
  readonly folders: readonly string[]
  readonly env: Parts['env']
  /** Hears of each check as soon as it is decided. */
  readonly onChecked?: (checked: Checked) => void
}
/** INVALID_FIELD names `port`, `url` or `on`. */
export async function checkAdapter({
  port,
  url,
  on = '',
  letters,
  folders,
  env,
  onChecked = () => undefined,
}: Asked): Promise<Report> {
  const kit = kits[port]
  if (!kit)
    throw fault('INVALID_FIELD', {
      field: 'port',
      why: `is none that can be checked; there are ${checkable.join(', ')}`,
    })
  const { adapter } = await loadAdapter(port, 'url', url.replaceAll(placeholder, '0'), folders)
  const rides = ridesOf(on, adapter)
  requireOwnPlaces(adapter, url, 'url')
  for (const [name, at] of Object.entries(rides))
    requireOwnPlaces(
      (await loadAdapter(name, 'on', at.replaceAll(placeholder, '0'), folders)).adapter,
      at,
      'on',
    )
  const run = systemClock().id().slice(-8)
  const tests: { name: string; run: () => void | Promise<void> }[] = []
  const checks: Checked[] = []
  const unasked: Checked[] = []
  let count = 0
  const note = (checked: Checked) => {
    checks.push(checked)
    onChecked(checked)
  }
  const folder = mkdtempSync(join(tmpdir(), 'agent-platform-check-'))
  try {
    const parts: Parts = {
      port,
      adapter,
      url,
      folders,
      env,
      on: rides,
      letters,
      folder,
      mark: () => `${run}${count++}`,
    }
    await kit(
      (name, body) => void tests.push({ name, run: body }),
      parts,
      (check, why) => void unasked.push({ check, result: 'unsupported', detail: why }),
    )
    for (const { name, run: body } of tests) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(new Error(`it took longer than ${checkMsMax} ms`)),
          checkMsMax,
        )
      })
      await Promise.race([Promise.resolve().then(body), late])
        .then(
          () => note({ check: name, result: 'holds', detail: '' }),
          (error: unknown) => note({ check: name, result: 'fails', detail: sentenceOf(error) }),
        )
        .finally(() => clearTimeout(timer))
    }
    unasked.forEach(note)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  const of = (result: Checked['result']) => checks.filter(one => one.result === result).length
  return {
    ok: of('fails') === 0,
    holds: of('holds'),
    unsupported: of('unsupported'),
    fails: of('fails'),
    checks,
  }
}
