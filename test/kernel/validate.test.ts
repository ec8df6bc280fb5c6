// What a schema is refused for, though no schema of schemas is consulted: a partner's slip must not
// become a check that lets everything through.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createValidator } from '#kernel'

const refused: readonly (readonly [object, RegExp])[] = [
  [{ type: 'strng' }, /type must be JSONType/],
  [{ type: 'string', minLength: '1' }, /minLength value must be/],
  [{ type: 'object', propertees: {} }, /unknown keyword: "propertees"/],
  [{ type: 'object', required: 'name' }, /required value must be/],
  [{ type: 'object', properties: { name: 'string' } }, /unknown keyword/],
  [{ type: 'string', pattern: '(' }, /Invalid regular expression/],
  [{ type: 'string', format: 'isbn' }, /unknown format "isbn"/],
  [{ type: 'array', items: 'string' }, /items value must be/],
  [{ $ref: '#/elsewhere' }, /can't resolve reference/],
  [{ enum: [] }, /enum must have non-empty array/],
]
for (const [schema, why] of refused) {
  test(`refuses the schema ${JSON.stringify(schema)}`, () => {
    assert.throws(() => createValidator().check('body', schema as never), why)
  })
}

const id = 'ABCDEF00-0000-7000-8000-00000000DEAD'
const uuid = { type: 'string', format: 'uuid' }
const shaped = createValidator().check('body', {
  type: 'object',
  required: ['must', 'inner'],
  additionalProperties: false,
  properties: {
    must: { type: 'string' },
    may: { type: 'string', minLength: 1 },
    filled: { type: 'boolean', default: true },
    nothing: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    any: {},
    ids: { type: 'array', items: uuid },
    id: uuid,
    idOrNull: { anyOf: [uuid, { type: 'null' }] },
    inner: { type: 'object', properties: { id: uuid, may: { type: 'integer' } }, required: ['id'] },
    several: {
      anyOf: [
        { type: 'object', properties: { a: { type: 'string' } } },
        { type: 'object', properties: { a: { type: 'null' } } },
      ],
    },
  },
} as never)

test('null for an optional field means absent at every depth, unless null is a value', () => {
  const inner = { id, may: null }
  const written = {
    must: 'x',
    may: null,
    filled: null,
    nothing: null,
    any: null,
    ids: null,
    several: { a: null },
    inner,
  }
  assert.equal(shaped(written), {
    must: 'x',
    filled: true,
    nothing: null,
    any: null,
    several: { a: null },
    inner: { id: id.toLowerCase() },
  })
  assert.throws(() => shaped({ must: null, inner }), /must: must be string/)
  assert.throws(() => shaped({ must: 'x', inner: { id: null } }), /inner\.id: must be string/)
})
test('ids are the same in capitals', () => {
  const lower = id.toLowerCase()
  const written = { must: id, id, ids: [id, lower], idOrNull: id, inner: { id } }
  assert.equal(shaped(written), {
    must: id,
    filled: true,
    id: lower,
    ids: [lower, lower],
    idOrNull: lower,
    inner: { id: lower },
  })
  const path = createValidator().check('path', {
    type: 'object',
    properties: { id: uuid },
    required: ['id'],
  } as never)
  assert.equal(path({ id }), { id: lower })
  for (const wrong of [7, null, {}, [id], 'urn:uuid:' + id])
    assert.throws(() => path({ id: wrong }), /id/)
})

test('a text is asked for well-formed Unicode only where its schema says true', () => {
  const of = (asked: boolean) =>
    createValidator().check('body', { type: 'string', 'x-well-formed': asked } as never)
  assert.is(of(false)('\ud800'), '\ud800')
  assert.throws(() => of(true)('\ud800'), /is not well-formed Unicode/)
})

test.run()
