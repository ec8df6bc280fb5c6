import { catalogue } from '#contracts/catalogue.ts'
import { definePlugin } from '#kernel'
import { Models, type Model } from '#ports/models.ts'

const wire = ({
  key,
  name,
  description,
  provider,
  isDefault,
  contextTokens,
  outputTokensMax,
  price,
  supports,
}: Model) => ({
  key,
  name,
  description,
  provider,
  is_default: isDefault,
  context_tokens: contextTokens,
  output_tokens_max: outputTokensMax,
  price: {
    input_per_1k: price.inputPer1k,
    output_per_1k: price.outputPer1k,
    minimum: price.minimum,
  },
  supports: { tools: supports.tools, reasoning: supports.reasoning },
})

export default definePlugin({
  name: 'models',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract: catalogue,
  uses: { models: Models },
  routes: {
    'GET /models': async ({ models }) => ({ items: (await models.catalogue()).map(wire) }),
  },
})
