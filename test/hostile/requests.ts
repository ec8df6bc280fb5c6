// Requests that nobody means well with: the bytes, and how the server may answer them.
import { bodies, frames } from './requests/bodies.ts'
import { headers, methods, upgrades } from './requests/heads.ts'
import { protocols } from './requests/protocols.ts'
import type { Hostile } from './requests/row.ts'
import { hosts, queries, targets } from './requests/targets.ts'

export const hostileRequests: readonly Hostile[] = [
  ...hosts,
  ...targets,
  ...queries,
  ...methods,
  ...upgrades,
  ...headers,
  ...frames,
  ...bodies,
  ...protocols,
]
