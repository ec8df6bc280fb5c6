// The errors of an operation, and the catalogue of all errors.
import type { Operation } from '../contract.ts'
import { faults, isWorthRetrying, type FaultCode } from '../faults.ts'
import { statusesOf } from '../statuses.ts'
import type { Json } from './schemas.ts'

const phrases: Record<number, string> = {
  400: 'Malformed; the message names the field',
  401: 'The token is missing, expired or invalid',
  402: 'Not enough credits; nothing started',
  403: 'Not allowed',
  404: 'Unknown, or not yours',
  405: 'Not offered here',
  408: 'Too slow',
  409: 'Conflict',
  413: 'Too large',
  415: 'Not a media type that is taken',
  429: 'Too often; honour Retry-After',
  500: 'Our error',
  502: 'A provider failed',
  503: 'Not now; retry with backoff',
}
const exampleId = '0193a6f0-7c8d-7e9f-8a0b-1c2d3e4f5a67'
const adviceOf = (code: FaultCode) =>
  isWorthRetrying(code) ? 'Worth the same request later' : 'Change the request first'

/** One response for each status, with one example for each of its codes. */
export const errorResponses = (operation: Operation, headers: Json): Json =>
  Object.fromEntries(
    [...statusesOf(operation)].map(([status, codes]) => {
      const examples = codes.map(code => [
        code,
        {
          summary: adviceOf(code),
          value: { detail: faults[code][1], code, request_id: exampleId },
        },
      ])
      const content = {
        schema: { $ref: '#/components/schemas/ApiError' },
        examples: Object.fromEntries(examples),
      }
      return [
        String(status),
        {
          description: phrases[status] ?? 'Refused',
          headers: {
            ...headers,
            ...(status === 429 || status === 503
              ? { 'Retry-After': { $ref: '#/components/headers/Retry-After' } }
              : {}),
          },
          content: { 'application/json': content },
        },
      ]
    }),
  )

const allCodes = Object.keys(faults) as FaultCode[]
const catalogue = [
  'What went wrong. A code never gets another meaning; new ones may come.',
  '',
  '| code | status | retry | meaning |',
  '|---|---|---|---|',
  ...allCodes.map(code => {
    const [status, sentence] = faults[code]
    const meaning = sentence.replaceAll('|', '\\|')
    return `| \`${code}\` | ${status} | ${isWorthRetrying(code) ? 'yes' : 'no'} | ${meaning} |`
  }),
].join('\n')

export const errorSchemas: Json = {
  ApiError: {
    type: 'object',
    description: 'Every answer that is not a success.',
    required: ['detail', 'code', 'request_id'],
    properties: {
      detail: {
        type: 'string',
        description: 'A sentence for people. Its words may change.',
        examples: ['limit: must be at most 200.'],
      },
      code: { $ref: '#/components/schemas/ErrorCode' },
      request_id: {
        type: 'string',
        description: 'Names the request in the logs of the platform.',
        examples: [exampleId],
      },
    },
  },
  ErrorCode: {
    type: 'string',
    description: catalogue,
    enum: allCodes,
    'x-errors': Object.fromEntries(
      allCodes.map(code => {
        const [status, sentence] = faults[code]
        return [code, { status, retry: isWorthRetrying(code), sentence }]
      }),
    ),
  },
}
