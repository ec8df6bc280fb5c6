// Makes a replica set's only server look like one that is none: it says so in its greeting, and
// refuses change streams in the words of a real one. All else passes as it is.
// https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { BSON, type Document } from 'mongodb'

export type Standalone = {
  readonly url: string
  /** Change streams that were asked for. */
  asked(): number
  /** Commands by name. */
  counts(): Readonly<Record<string, number>>
  /** From now on it is a replica set. */
  join(): void
  close(): Promise<void>
}

const reply = 1
const message = 2013
/** Where the first document begins, behind header and flags. */
const bodyAt: Record<number, number> = { [reply]: 36, [message]: 21 }
const membership = [
  'setName',
  'setVersion',
  'hosts',
  'passives',
  'arbiters',
  'primary',
  'me',
  'electionId',
  'lastWrite',
  '$clusterTime',
  'operationTime',
]

const documentOf = (packet: Buffer): Document | undefined => {
  const at = bodyAt[packet.readInt32LE(12)]
  return at === undefined || (at === 21 && packet[20] !== 0)
    ? undefined
    : BSON.deserialize(packet.subarray(at, at + packet.readInt32LE(at)), { promoteLongs: false })
}
/** The same packet with another document and, given, as the answer to a request. */
function withDocument(packet: Buffer, document: Document, answers?: number): Buffer {
  const at = bodyAt[packet.readInt32LE(12)]!
  const next = Buffer.concat([packet.subarray(0, at), BSON.serialize(document)])
  next.writeInt32LE(next.length, 0)
  if (answers !== undefined) next.writeInt32LE(answers, 8)
  return next
}
function packets(each: (packet: Buffer) => void) {
  let rest: Buffer = Buffer.alloc(0)
  return (part: Buffer) => {
    rest = Buffer.concat([rest, part])
    for (
      let size = 0;
      rest.length >= 4 && (size = rest.readInt32LE(0)) <= rest.length;
      rest = rest.subarray(size)
    )
      each(rest.subarray(0, size))
  }
}

export async function startStandalone(server: string): Promise<Standalone> {
  const { hostname, port } = new URL(server)
  const open = new Set<Socket>()
  const counts: Record<string, number> = {}
  let asked = 0
  let isMember = false
  const listener = createServer(client => {
    const behind = connect(Number(port), hostname)
    for (const socket of [client, behind]) {
      open.add(socket)
      socket
        .on('error', () => socket.destroy())
        .on('close', () => {
          open.delete(socket)
          for (const both of [client, behind]) both.destroy()
        })
    }
    client.on(
      'data',
      packets(packet => {
        const document = documentOf(packet)
        const name = document && Object.keys(document)[0]!
        if (name !== undefined) counts[name] = (counts[name] ?? 0) + 1
        if (isMember || !(document?.['pipeline'] as Document[] | undefined)?.[0]?.['$changeStream'])
          return void behind.write(packet)
        asked++
        client.write(
          withDocument(
            packet,
            {
              ok: 0,
              errmsg: 'The $changeStream stage is only supported on replica sets',
              code: 40_573,
              codeName: 'Location40573',
            },
            packet.readInt32LE(4),
          ),
        )
      }),
    )
    behind.on(
      'data',
      packets(packet => {
        const document = documentOf(packet)
        if (isMember || document?.['maxWireVersion'] === undefined) return void client.write(packet)
        for (const name of membership) delete document[name]
        client.write(withDocument(packet, document))
      }),
    )
  }).listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return {
    url: `mongodb://127.0.0.1:${(listener.address() as { port: number }).port}/`,
    asked: () => asked,
    counts: () => counts,
    join() {
      isMember = true
    },
    async close() {
      for (const socket of open) socket.destroy()
      listener.close()
      await once(listener, 'close')
    },
  }
}
