// Ports that reach beyond a plugin's own data. A plugin gets only the part that it declared, with
// the same names and types.
import { fault } from '#contracts/faults.ts'
import type { Ledger } from '#ports/billing.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Mailer } from '#ports/mail.ts'
import type { ModelProvider } from '#ports/models.ts'
import type { Queue } from '#ports/queue.ts'
import type { Tracer } from '#ports/traces.ts'
import type { Broadcasting } from '../kernel-ports.ts'
import type { Plugin } from '../plugin.ts'
import { orgOf } from './organisation.ts'

/** Milliseconds until the plugin may send another email. 0 means now, and counts the email. */
export type MailWait = (plugin: string) => number | Promise<number>

const refuse = (sentence: string): never => {
  throw new Error(sentence)
}
/** Plugins cannot close a port, because the platform opens and closes it. */
const closeOf = (plugin: Plugin, port: string) => () =>
  refuse(`${plugin.name} may not close the port ${port}.`)
const isOwnName = ({ names }: Plugin) => names === 'unprefixed'

/** Each plugin's holds have a name space of their own, so no plugin ends another's hold. */
export function declaredBilling(engine: Ledger, plugin: Plugin): Ledger {
  const { name, may: { charge, credit: reasons = [] } = {} } = plugin
  const named = (of: string) => (isOwnName(plugin) ? of : `${name}:${of}`)
  const charging = (orgId: string): string =>
    charge === undefined
      ? refuse(`${name} does not declare why it takes credits (may.charge).`)
      : orgOf({ orgId })
  return {
    ping: () => engine.ping(),
    close: closeOf(plugin, 'billing'),
    balance: orgId => engine.balance(orgOf({ orgId })),
    entries: (orgId, options) => engine.entries(orgOf({ orgId }), options),
    entry: (orgId, key) =>
      engine.entry(
        orgOf({ orgId }),
        key.replace(/^(hold|end):(.*)$/s, (_, kind: string, of: string) => `${kind}:${named(of)}`),
      ),
    hold: async (orgId, input) => engine.hold(charging(orgId), { ...input, of: named(input.of) }),
    capture: async (orgId, input) =>
      engine.capture(charging(orgId), { ...input, of: named(input.of) }),
    release: async (orgId, input) =>
      engine.release(charging(orgId), { ...input, of: named(input.of) }),
    async credit(orgId, input) {
      if (!reasons.includes(input.reason))
        refuse(
          `${name} does not declare that it adds credits for this reason (may.credit): ` +
            `${input.reason}`,
        )
      if (/^(?:hold|end):/.test(input.key))
        throw fault('INVALID_FIELD', { field: 'key', why: 'is one of a hold' })
      return engine.credit(orgOf({ orgId }), input)
    },
  }
}

/** A plugin enqueues its own jobs only, under schedules of its own. */
export function declaredQueue(engine: Queue, plugin: Plugin): Queue {
  const own = new Set(Object.keys(plugin.jobs ?? {}))
  const mine = (job: string) =>
    own.has(job) ? job : refuse(`${plugin.name} does not declare the job ${job}.`)
  const key = (given: string) =>
    given.startsWith(`${plugin.name}.`) ? given : `${plugin.name}.${given}`
  return {
    ping: () => engine.ping(),
    close: closeOf(plugin, 'queue'),
    define: name =>
      refuse(`${plugin.name} defines the job ${name} by its own hand; it declares its jobs.`),
    enqueue: async (name, data, options) => engine.enqueue(mine(name), data, options),
    schedule: async (given, schedule) =>
      engine.schedule(key(given), { ...schedule, name: mine(schedule.name) }),
    unschedule: async given => engine.unschedule(key(given)),
    cancel: id => engine.cancel(id),
    state: id => engine.state(id),
    depth: async names => engine.depth(names.map(mine)),
  }
}

export function declaredMail(engine: Mailer, plugin: Plugin, wait: MailWait): Mailer {
  const { name, may: { mail } = {} } = plugin
  return {
    ping: () => engine.ping(),
    close: closeOf(plugin, 'mail'),
    async send(letter, options) {
      if (mail === undefined)
        refuse(`${name} does not declare what it sends emails for (may.mail).`)
      const waitMs = await wait(name)
      if (waitMs > 0)
        throw fault(
          'RATE_LIMITED',
          { limit: 'emails', seconds: Math.ceil(waitMs / 1000) },
          { retryAfterMs: waitMs },
        )
      return engine.send(letter, options)
    },
  }
}

/** Every plugin may read the catalogue; only `may.models` allows a call. */
export function declaredModels(engine: ModelProvider, plugin: Plugin): ModelProvider {
  return {
    ping: () => engine.ping(),
    close: closeOf(plugin, 'models'),
    catalogue: () => engine.catalogue(),
    stream: request =>
      plugin.may?.models === undefined
        ? refuse(`${plugin.name} does not declare why it asks models (may.models).`)
        : engine.stream(request),
  }
}

export function declaredLimits(engine: RateLimiter, plugin: Plugin): RateLimiter {
  const mine = (name: string) =>
    Object.hasOwn(plugin.limits ?? {}, name)
      ? name
      : refuse(`${plugin.name} does not declare the rate limit ${name}.`)
  return {
    ping: () => engine.ping(),
    close: closeOf(plugin, 'limits'),
    take: (name, subject, rate, cost) => engine.take(mine(name), subject, rate, cost),
    refund: (name, subject, rate, cost) => engine.refund(mine(name), subject, rate, cost),
    reset: (name, subject) => engine.reset(mine(name), subject),
  }
}

export const declaredTraces = (engine: Tracer, plugin: Plugin): Tracer => ({
  ping: () => engine.ping(),
  close: closeOf(plugin, 'traces'),
  span: (name, options, act) => engine.span(name, options, act),
})

/** A plugin's topics have a name space of their own, apart from the platform's hints. */
export function declaredPeers(peers: Broadcasting, plugin: Plugin): Broadcasting {
  const named = (topic: string) => {
    if (!isOwnName(plugin)) return `${plugin.name}.${topic}`
    return topic === 'plugins'
      ? refuse(`${plugin.name} may not tell other processes what the platform tells them.`)
      : topic
  }
  return {
    publish: (topic, data) => peers.publish(named(topic), data),
    subscribe: (topic, act) => peers.subscribe(named(topic), act),
  }
}
