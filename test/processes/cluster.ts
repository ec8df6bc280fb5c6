// Several processes on one MongoDB, behind a proxy that spreads requests over those that answer
// them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient, type Client } from '../durability/client.ts'
import { modelsUrl } from '../durability/load.ts'
import type { Env } from '../durability/round.ts'
import { endProcesses, signUp, startProcess, type Process } from '../support/process.ts'
import { startProxy, type Proxy } from '../support/databases/proxy.ts'

export type Role = 'all' | 'api' | 'worker'
export type Member = {
  readonly name: string
  readonly role: Role
  readonly env: Env
  readonly process: () => Process
  /** Ends it in this way, and starts another in its place. */
  restart(signal: NodeJS.Signals): Promise<void>
}
export type Cluster = {
  readonly members: readonly Member[]
  readonly client: Client
  readonly token: string
  readonly orgId: string
  readonly base: string
  readonly credits: number
  readonly env: Env
  add(role: Role, settings?: Env): Promise<Member>
}

/** The store is slow where it is not MongoDB: whoever asks again too soon makes it slower. */
const patienceMs = 15_000
const credits = 100_000
const opened: { readonly close: () => Promise<void> }[] = []
/** For `test.after`. */
export async function endClusters(): Promise<void> {
  await endProcesses()
  for (const { close } of opened) await close()
}

/** `roles`: one process each; requests go to those that answer them, in turn. */
export async function startCluster(
  storageUrl: string,
  roles: readonly (Role | readonly [Role, Env])[],
  settings: Env = {},
): Promise<Cluster> {
  const dir = mkdtempSync(join(tmpdir(), 'agent-platform-cluster-'))
  const members: Member[] = []
  const front: Proxy = await startProxy(() =>
    members.filter(({ role }) => role !== 'worker').map(({ process }) => process().port),
  )
  const common: Env = {
    STORAGE_URL: storageUrl,
    AUTH_SECRET: crypto.randomUUID(),
    MODELS_URL: modelsUrl,
    RUNS_DEATHS_MAX: '100',
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
    RUNS_LEASE_MS: '2000',
    RUNS_SWEEP_MS: '300',
    ...settings,
  }
  const add = async (role: Role, more: Env = {}): Promise<Member> => {
    const name = `${role}-${members.length}`
    const env = { ...common, ROLE: role, DATA_DIR: join(dir, name), ...more }
    let process = await startProcess(env)
    const member: Member = {
      name,
      role,
      env,
      process: () => process,
      async restart(signal) {
        await process.kill(signal)
        process = await startProcess(env)
      },
    }
    members.push(member)
    return member
  }
  for (const one of roles) await (typeof one === 'string' ? add(one) : add(...one))
  const base = `http://127.0.0.1:${front.port}/api/v1`
  const { env } = members[0]!
  const who = await signUp(base, env, credits)
  const { token, orgId } = who
  const client = createClient(base, who, patienceMs)
  opened.push({
    async close() {
      client.close()
      await front.close()
      rmSync(dir, { recursive: true, force: true })
    },
  })
  return { members, client, token, orgId, base, credits, env, add }
}
