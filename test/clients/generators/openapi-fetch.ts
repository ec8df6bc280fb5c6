// openapi-typescript makes types of the document, by which openapi-fetch checks its calls.
import { join } from 'node:path'
import { npmCommand, run } from '../child.ts'
import type { Client } from '../client.ts'
import { generate, typescriptStages } from './stages.ts'

export const openapiFetch: Client = {
  name: 'openapi-typescript and openapi-fetch',
  needs: ['node'],
  stages: [
    generate(({ document, folder, tools }, generated) =>
      run(
        npmCommand(tools.node, 'openapi-typescript'),
        [
          document,
          '--output',
          join(generated, 'schema.d.ts'),
          // A field with a default may be left out of a request.
          '--default-non-nullable=false',
        ],
        { cwd: folder },
      ),
    ),
    ...typescriptStages('openapi-fetch'),
  ],
}
