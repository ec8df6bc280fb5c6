// A line for each request that was answered.
import type { Log } from '#ports/adapter.ts'
import type { HttpReport } from '#ports/http.ts'
import type { Endpoint } from './endpoint.ts'
import type { Settings } from '../settings/settings.ts'

/** Undefined where the settings want no such lines. `endpointOf` takes `METHOD /path`. */
export function createRequestLog(
  settings: Settings,
  log: Log,
  endpointOf: (id: string) => Endpoint | undefined,
): HttpReport | undefined {
  if (!settings.LOG_REQUESTS && settings.LOG_LEVEL !== 'debug') return undefined
  const level = settings.LOG_REQUESTS ? 'info' : 'debug'
  return ({ method, route, status, id, seconds }) => {
    const instance = endpointOf(`${method} ${route}`)?.instance
    log(level, 'request.ended', {
      method,
      route,
      status,
      ms: Math.round(seconds * 1e4) / 10,
      request_id: id,
      plugin: instance?.plugin.name,
      generation: instance?.generation,
    })
  }
}
