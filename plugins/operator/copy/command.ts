// `storage copy`: moves an installation between adapters, with every server stopped. It runs before
// any adapter is bound.
import { Type as t, type Static } from 'typebox'
import { fault, offlineCommand, type Chosen as Places, type Installation } from '#kernel'
import type { BlobsEngine } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { SearchEngine } from '#ports/search.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { copyAll, type Side } from './copy.ts'

/** Beside the storage; in the order in which they are copied. */
const others = ['eventlog', 'blobs', 'search'] as const
type Port = 'storage' | (typeof others)[number]
/** The settings that choose adapters. */
type Chosen = Places & { readonly STORAGE_URL: string }
type Tools = Pick<Installation, 'bind' | 'placeOf' | 'tell'> & {
  readonly settings: Pick<Installation['settings'], 'QUEUE_URL'>
}

const url = (description: string) => t.String({ minLength: 1, description })
const followed = "default: what the settings say, else what follows from the storage's."
const copyOptions = t.Object(
  {
    from: url('The storage to read, as STORAGE_URL has it.'),
    to: url(
      'The storage to fill: an empty one, or one that this command was filling when it was ' +
        'cut off.',
    ),
    eventlog_from: t.Optional(url(`As EVENTLOG_URL has it; ${followed}`)),
    eventlog_to: t.Optional(url(`As EVENTLOG_URL has it; ${followed}`)),
    blobs_from: t.Optional(url(`As BLOBS_URL has it; ${followed}`)),
    blobs_to: t.Optional(url(`As BLOBS_URL has it; ${followed}`)),
    search_from: t.Optional(url(`As SEARCH_URL has it; ${followed}`)),
    search_to: t.Optional(url(`As SEARCH_URL has it; ${followed}`)),
  },
  { additionalProperties: false },
)

/** Without what a log must not hold. */
const bare = (place: string): string => {
  const { protocol, host, pathname } = new URL(place)
  return `${protocol}${host ? `//${host}` : ''}${pathname}`
}
const chosen = (asked: Static<typeof copyOptions>, side: 'from' | 'to'): Chosen => ({
  STORAGE_URL: asked[side],
  ...Object.fromEntries(
    others.flatMap(port =>
      asked[`${port}_${side}`] === undefined
        ? []
        : [[`${port.toUpperCase()}_URL`, asked[`${port}_${side}`]]],
    ),
  ),
})

export async function copyInstallation(
  { settings, bind, placeOf, tell }: Tools,
  asked: Static<typeof copyOptions>,
) {
  const source = chosen(asked, 'from')
  const target = chosen(asked, 'to')
  for (const [field, value] of Object.entries(asked))
    if (!URL.canParse(value)) throw fault('INVALID_FIELD', { field, why: 'is not a URL' })
  const moved = (['storage', ...others] as const).filter(
    port => placeOf(port, source) !== placeOf(port, target),
  )
  const stays = others.filter(port => !moved.includes(port))
  if (!moved.includes('storage'))
    throw fault('INVALID_FIELD', { field: 'to', why: 'is where it is copied from' })
  tell(
    'No process may serve the source or the target until this has ended: an embedded ' +
      'database refuses a second one, a server such as MongoDB does not.',
  )
  await using opened = new AsyncDisposableStack()
  const open = async (
    side: Partial<Chosen>,
    only: readonly (Port | 'clock')[],
    given?: Readonly<Record<string, unknown>>,
  ) => {
    const bound = await bind(side, only, given)
    opened.defer(() => bound.close())
    return bound
  }
  const clock = (await open({}, ['clock'])).engine<Clock>('clock')
  const now = clock.now()
  // Stops the clock, so that nothing expires on either side meanwhile.
  const still: Clock = { ...clock, now: () => now }
  const sideOf = async (side: Chosen): Promise<Side> => {
    const { engine } = await open(side, moved, { clock: still })
    const part = <T>(port: Port) => (moved.includes(port) ? { [port]: engine<T>(port) } : {})
    return {
      storage: engine<StorageEngine>('storage'),
      ...part<EventlogEngine>('eventlog'),
      ...part<BlobsEngine>('blobs'),
      ...part<SearchEngine>('search'),
    }
  }
  const described = moved.map(port => `${port} ${bare(placeOf(port, source))}`).join(', ')
  const copied = await copyAll({
    from: await sideOf(source),
    to: await sideOf(target),
    described,
    clock,
    tell,
  })
  return {
    ...copied,
    from: described,
    to: moved.map(port => `${port} ${bare(placeOf(port, target))}`).join(', '),
    stays: [
      ...stays.map(port => `${port} ${bare(placeOf(port, source))}`),
      `the files of DATA_DIR (secrets, letters, plugins)`,
      ...(settings.QUEUE_URL.startsWith('agenda:') ? ['the jobs of QUEUE_URL'] : []),
    ],
  }
}

export const copyCommand = offlineCommand({
  summary:
    'Copies a whole installation into other adapters, verifies it, and goes on where it ' +
    'was cut off; every server is stopped.',
  options: copyOptions,
  offline: true,
  run: copyInstallation,
})
