// Connects to a MongoDB deployment, and turns its errors into faults.
import {
  MongoBulkWriteError,
  MongoClient,
  MongoError,
  MongoServerError,
  type Db,
  type MongoClientOptions,
} from 'mongodb'
import { fault, type Fault } from '#contracts/faults.ts'
import { DriverConnection } from './driver-connection.ts'

const serviceName = 'The database'
const databaseDefault = 'agent_platform'
const timeoutMs = 20_000
const selectionMs = 5000

/**
 * Options of a mongodb: URL, with MongoDB's names
 * (https://www.mongodb.com/docs/manual/reference/connection-string-options/).
 */
export const urlOptions = {
  hosts:
    'Further members of the deployment, host:port with commas between them; ' +
    'mongodb://a:27017,b:27017/db says the same.',
  srv: 'true: the host names a list of hosts in DNS (what mongodb+srv: means); default false.',
  replicaSet: 'Name of the replica set.',
  directConnection: 'true: this one server and no other of its set; default false.',
  authSource: 'The database that knows the user; default admin.',
  authMechanism: 'How the user proves who it is; default by the server.',
  tls: 'true: encrypted; default false, with mongodb+srv true.',
  tlsCAFile: "PEM file of the authority that signed the server's certificate.",
  tlsCertificateKeyFile: 'PEM file of the certificate and key that this side shows.',
  maxPoolSize: 'Connections at most; default 100.',
  appName: "Shown in the server's log.",
  socketTimeoutMS: `How long the server may be silent in a call; default ${timeoutMs}.`,
  serverSelectionTimeoutMS:
    'How long a call looks for a server that takes writes; ' + `default ${selectionMs}.`,
} as const

export const closed = (): Fault => fault('UNAVAILABLE', { what: serviceName, why: 'it is closed' })

/**
 * True when the fate of a bulk write is unknown. The driver reports a broken connection during a
 * bulk write like an error of the server.
 */
export const isUnanswered = (error: unknown): boolean =>
  error instanceof MongoBulkWriteError &&
  ([error.writeErrors].flat().length === 0 || error.result.getWriteConcernError() !== undefined)

/**
 * Turns a database error into a fault; other errors stay as they are. Addresses, users and
 * passwords are left out.
 */
export function toFault(error: unknown): unknown {
  if (error instanceof MongoServerError && error.code === 11_000) {
    const fields = Object.keys((error['keyPattern'] as object | undefined) ?? {}).map(field =>
      field === '_id' ? 'id' : field,
    )
    return fault('DUPLICATE', { fields: fields.join(', ') || 'key' }, { cause: error })
  }
  if (!(error instanceof MongoError)) return error
  const why =
    error instanceof MongoServerError && !isUnanswered(error)
      ? `it refused a call (${error.codeName ?? error.code})`
      : error.name === 'MongoServerSelectionError'
        ? 'no server that takes writes answers'
        : `the connection failed (${error.name})`
  return fault('UNAVAILABLE', { what: serviceName, why }, { cause: error, retryAfterMs: 1000 })
}
export const orFault = <T>(promise: Promise<T>): Promise<T> =>
  promise.catch((error: unknown) => Promise.reject(toFault(error)))

/** The URL for the driver: with all hosts, and without options that the driver does not know. */
export function hrefOf(url: URL): string {
  const { hosts, srv } = Object.fromEntries(url.searchParams)
  const plain = new URL(url)
  for (const ours of ['hosts', 'srv']) plain.searchParams.delete(ours)
  return plain.href
    .replace(/^mongodb:/, srv === 'true' ? 'mongodb+srv:' : 'mongodb:')
    .replace(url.host, hosts ? `${url.host},${hosts}` : url.host)
}

export type Connection = {
  readonly db: Db
  ping(): Promise<void>
  close(): Promise<void>
}

/**
 * Connects. A majority acknowledges each write in its journal, so an applied write is durable.
 * Reads see majority data, so a fail-over takes nothing back that was shown. The driver finds the
 * server again by itself. UNAVAILABLE when none answers now.
 */
export async function connect(url: URL): Promise<Connection> {
  const number = (name: string, standard: number) => Number(url.searchParams.get(name) ?? standard)
  const options: MongoClientOptions & { connectionType: typeof DriverConnection } = {
    // The driver takes this option, and its types do not list it.
    connectionType: DriverConnection,
    writeConcern: { w: 'majority', journal: true },
    readConcern: { level: 'majority' },
    readPreference: 'primary',
    retryReads: true,
    retryWrites: true,
    ignoreUndefined: true,
    socketTimeoutMS: number('socketTimeoutMS', timeoutMs),
    serverSelectionTimeoutMS: number('serverSelectionTimeoutMS', selectionMs),
    connectTimeoutMS: 5000,
    appName: url.searchParams.get('appName') ?? 'agent-platform',
  }
  const client = new MongoClient(hrefOf(url), options)
  const db = client.db(decodeURIComponent(url.pathname.slice(1)) || databaseDefault)
  const ping = async () => void (await orFault(db.command({ ping: 1 })))
  try {
    await ping()
  } catch (error) {
    await client.close()
    throw error
  }
  return { db, ping, close: () => client.close() }
}

/**
 * Milliseconds since 1970 by the server, whose clock is the same for every process
 * (https://www.mongodb.com/docs/manual/reference/command/hello/: `localTime`).
 */
export const serverTime = async (db: Db): Promise<number> =>
  Number(((await orFault(db.command({ hello: 1 }))) as { localTime: Date }).localTime)
