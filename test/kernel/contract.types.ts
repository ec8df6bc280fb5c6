// Never run: tsc proves here that what must not compile does not. An expectation that is not met is
// an error itself.
import { Type as t } from 'typebox'
import { contract, ref, type Routes } from '#contracts/contract.ts'
import { definePlugin } from '#kernel'
import { Billing } from '#ports/billing.ts'

const Thing = t.Object({ id: ref('thing'), size: t.Integer() })
const things = contract({
  'GET /things/{id}': { summary: 'Read', params: { id: ref('thing') }, reply: Thing },
  'POST /things': {
    summary: 'Make',
    body: t.Object({ size: t.Integer() }),
    reply: Thing,
    status: 201,
  },
  'GET /things/{id}/events': { summary: 'Follow', params: { id: ref('thing') }, reply: 'sse' },
})
const whole: Routes<typeof things, object> = {
  'GET /things/{id}': ({ params, caller }) => ({ id: params.id + caller.orgId, size: 1 }),
  'POST /things': ({ body }) => ({ id: 'x', size: body.size }),
  'GET /things/{id}/events': async function* ({ after }) {
    yield [{ seq: after, type: 'x', data: null }]
  },
}

contract({
  // @ts-expect-error A parameter of the path has no schema.
  'GET /others/{id}': { summary: 'Read', reply: Thing },
})
// @ts-expect-error A row has no handler.
export const missing: Routes<typeof things, object> = {
  'GET /things/{id}': whole['GET /things/{id}'],
  'POST /things': whole['POST /things'],
}
export const wrongReply: Routes<typeof things, object> = {
  ...whole,
  // @ts-expect-error The reply lacks a field.
  'POST /things': ({ body }) => ({ size: body.size }),
}
export const wrongBody: Routes<typeof things, object> = {
  ...whole,
  // @ts-expect-error The body has no such field.
  'POST /things': ({ body }) => ({ id: 'x', size: body.weight }),
}
export const wrongParameter: Routes<typeof things, object> = {
  ...whole,
  // @ts-expect-error The path has no such parameter.
  'GET /things/{id}': ({ params }) => ({ id: params.name, size: 1 }),
}
export const wrongDependency = definePlugin({
  name: 'x',
  version: '1.0.0',
  kernel: '^1.0.0',
  uses: { billing: Billing },
  contract: contract({ 'GET /x': { summary: 'x', reply: t.Object({ balance: t.Integer() }) } }),
  // @ts-expect-error The ledger has no such method.
  routes: { 'GET /x': ({ billing, caller }) => billing.guess(caller.orgId) },
})
// @ts-expect-error A contract without handlers.
export const noRoutes = definePlugin({
  name: 'y',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract: things,
})
