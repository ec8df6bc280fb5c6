import { Type as t } from 'typebox'
import { contract, page } from './contract.ts'

export const Model = t.Object({
  key: t.String({ description: 'What `model` of POST /chat takes.' }),
  name: t.String(),
  description: t.String(),
  provider: t.String(),
  is_default: t.Boolean(),
  context_tokens: t.Integer(),
  output_tokens_max: t.Integer(),
  price: t.Object(
    { input_per_1k: t.Number(), output_per_1k: t.Number(), minimum: t.Integer() },
    { description: 'In credits.' },
  ),
  supports: t.Object({ tools: t.Boolean(), reasoning: t.Boolean() }),
})
export const catalogue = contract({
  'GET /models': { summary: 'List the models that your account may use', reply: page(Model) },
})
export const account = contract({
  'GET /balance': {
    summary: 'Read the credit balance of your organisation',
    reply: t.Object({
      balance: t.Integer({ description: 'Whole credits.' }),
      held: t.Integer({ description: 'Set aside for runs under way.' }),
      available: t.Integer({ description: 'balance - held' }),
    }),
  },
})
