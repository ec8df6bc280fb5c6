import { definePlugin } from '#kernel'
import { SystemClock } from '#ports/clock.ts'
import { Storage } from '#ports/storage.ts'
import { memos as contract } from './contract.ts'
import { createMemos, Memos } from './service.ts'

export default definePlugin({
  name: 'memos',
  version: '1.0.0',
  kernel: '^1.0.0',
  mount: 'v1',
  contract,
  uses: { store: Storage, clock: SystemClock },
  collections: [Memos],
  services: { memos: createMemos },
  routes: {
    'POST /memos': ({ memos, caller, body }) => memos.create(caller, body.text),
    'GET /memos': ({ memos, caller, query }) => memos.list(caller, query),
    'GET /memos/{id}': ({ memos, caller, params }) => memos.read(caller, params.id),
    'DELETE /memos/{id}': ({ memos, caller, params }) => memos.remove(caller, params.id),
  },
})
