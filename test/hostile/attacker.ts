// A process of hostile clients, started by siege.ts: so many at a time, until it is told to end.
//   node test/hostile/attacker.ts <port> <token> <clients>
import { attacks, type Target } from './attacks.ts'

const [port, token, clients] = process.argv.slice(2)
const target: Target = { port: Number(port), token: token!, random: Math.random }
const kinds = Object.entries(attacks)
const made: Record<string, number> = {}
let isOver = false
let next = 0

/** Each client takes the next kind: all are under way beside each other, and none is left out. */
async function attack(): Promise<void> {
  while (!isOver) {
    const [name, make] = kinds[next++ % kinds.length]!
    // A refused or broken connection is what an attacker meets; whether the server still serves,
    // others see.
    await make(target).catch(() => undefined)
    made[name] = (made[name] ?? 0) + 1
  }
}
process.once('message', () => {
  isOver = true
})
await Promise.all(Array.from({ length: Number(clients) }, attack))
process.send!(made)
process.disconnect()
