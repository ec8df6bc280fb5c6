import { account } from '#contracts/catalogue.ts'
import { definePlugin } from '#kernel'
import { Billing } from '#ports/billing.ts'

export default definePlugin({
  name: 'billing',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract: account,
  uses: { billing: Billing },
  routes: { 'GET /balance': ({ billing, caller }) => billing.balance(caller.orgId) },
})
