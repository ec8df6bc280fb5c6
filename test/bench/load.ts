// The soak's client processes as one: their work shared out, their figures added up.
import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import type { Order, Told, Work } from './soak/soak-client.ts'

/** Of one process. */
const streamsEach = 4000

export type Load = ReturnType<typeof openLoad>
export type First = { readonly ms: number; readonly at: number }

export function openLoad(work: Work, token: string) {
  const count = Math.ceil((work.idle + work.busy) / streamsEach)
  const share = (whole: number, i: number) =>
    Math.floor(whole / count) + (i < whole % count ? 1 : 0)
  const told: Told[] = []
  let firsts: First[] = []
  const children: ChildProcess[] = Array.from({ length: count }, (_, i) => {
    const child = fork(join(import.meta.dirname, 'soak/soak-client.ts'), {
      execArgv: ['--disable-warning=ExperimentalWarning'],
    })
    child.on('message', (one: Told) => {
      told[i] = one
      for (const [ms, at] of one.firsts) firsts.push({ ms, at })
    })
    child.send({
      do: 'work',
      token,
      work: { ...work, idle: share(work.idle, i), busy: share(work.busy, i) },
    } satisfies Order)
    return child
  })
  const dead = () =>
    children.some(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null)
  return {
    count,
    order: (what: Order) => children.forEach(child => child.send(what)),
    total: (field: 'open' | 'asked' | 'started' | 'done' | 'events' | 'broke' | 'failed') =>
      told.reduce((sum, one) => sum + (one?.[field] ?? 0), 0),
    why: () => told.flatMap(one => one?.why ?? []),
    /** The first events of runs, since the last call. */
    firsts: (): readonly First[] => {
      const those = firsts
      firsts = []
      return those
    },
    over: () => Array.from(told).filter(one => one?.over).length === count,
    check(): void {
      if (dead()) throw new Error('A client process ended.')
    },
    async until(holds: () => boolean): Promise<void> {
      for (; !holds(); await new Promise(resolve => setTimeout(resolve, 200))) this.check()
    },
    end: () =>
      Promise.all(
        children.map(child =>
          (child.exitCode ?? child.signalCode) === null
            ? new Promise(ended => child.once('exit', ended).kill('SIGTERM'))
            : undefined,
        ),
      ),
  }
}
