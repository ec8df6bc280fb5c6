import { Type as t } from 'typebox'
import { contract, named, page, tagged } from './contract.ts'

export const Model = named(
  'Model',
  t.Object({
    key: t.String({ example: 'scripted', description: 'What `model` of POST /chat takes.' }),
    name: t.String({ example: 'Scripted' }),
    description: t.String({ example: 'Answers by a script, for trying out.' }),
    provider: t.String({ example: 'scripted' }),
    is_default: t.Boolean(),
    context_tokens: t.Integer({ example: 128_000 }),
    output_tokens_max: t.Integer({ example: 8192 }),
    price: t.Object(
      { input_per_1k: t.Number(), output_per_1k: t.Number(), minimum: t.Integer() },
      { description: 'In credits.' },
    ),
    supports: t.Object({ tools: t.Boolean(), reasoning: t.Boolean() }),
  }),
)
export const catalogue = tagged(
  'Models',
  contract({
    'GET /models': {
      id: 'listModels',
      description: 'All on one page. `key` is what `model` of a run takes.',
      summary: 'List the models that your account may use',
      reply: page(Model),
    },
  }),
)
export const account = tagged(
  'Credits',
  contract({
    'GET /balance': {
      id: 'getBalance',
      description: 'In whole credits. What is held goes back when a run costs less than it might.',
      summary: 'Read the credit balance of your organisation',
      reply: t.Object({
        balance: t.Integer({ example: 500, description: 'Whole credits.' }),
        held: t.Integer({ example: 20, description: 'Set aside for runs under way.' }),
        available: t.Integer({ example: 480, description: 'balance - held' }),
      }),
    },
  }),
)
