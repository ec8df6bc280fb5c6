// OpenAPI Generator, in Java, makes clients of many languages. These two are the most used.
import { run } from '../child.ts'
import type { Client, Stage } from '../client.ts'
import { generate, pythonStages, typescriptStages } from './stages.ts'

const generated = (generator: string): Stage =>
  generate(({ document, folder, tools }, output) =>
    run(
      'java',
      [
        // Such a short run is over before the second compiler has paid off.
        '-XX:TieredStopAtLevel=1',
        '-XX:+UseSerialGC',
        '-jar',
        tools.jar,
        'generate',
        `--generator-name=${generator}`,
        `--input-spec=${document}`,
        `--output=${output}`,
        ...(generator === 'python' ? ['--package-name=generated_client'] : []),
      ],
      { cwd: folder },
    ),
  )

export const openapiGenerators: readonly Client[] = [
  {
    name: 'openapi-generator typescript-fetch',
    needs: ['node', 'jar'],
    stages: [generated('typescript-fetch'), ...typescriptStages('openapi-generator')],
  },
  {
    name: 'openapi-generator python',
    needs: ['python', 'jar'],
    stages: [
      generated('python'),
      ...pythonStages('openapi_generator', ['generated/generated_client']),
    ],
  },
]
