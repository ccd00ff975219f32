// What a program with the AWS SDK for JavaScript v3 does. Settings come from the environment, as for any program.
import assert from 'node:assert/strict'
import {createRequire} from 'node:module'

// Modules are found where they were installed, which is not where this file is.
const require = createRequire(process.argv[2] + '/')
const dynamodb = require('@aws-sdk/client-dynamodb')
const {DynamoDBClient, waitUntilTableExists, waitUntilTableNotExists} = dynamodb
const lib = require('@aws-sdk/lib-dynamodb')
const streams = require('@aws-sdk/client-dynamodb-streams')

const client = new DynamoDBClient({})
const documents = lib.DynamoDBDocumentClient.from(client, {marshallOptions: {removeUndefinedValues: true}})
const TableName = 'Games'

const tours = {
  async 'a table is made'() {
    await client.send(new dynamodb.CreateTableCommand({
      TableName,
      AttributeDefinitions: ['player', 'game', 'league'].map((name) => ({AttributeName: name, AttributeType: 'S'})),
      KeySchema: [{AttributeName: 'player', KeyType: 'HASH'}, {AttributeName: 'game', KeyType: 'RANGE'}],
      GlobalSecondaryIndexes: [{
        IndexName: 'by-league',
        KeySchema: [{AttributeName: 'league', KeyType: 'HASH'}, {AttributeName: 'player', KeyType: 'RANGE'}],
        Projection: {ProjectionType: 'ALL'},
      }],
      BillingMode: 'PAY_PER_REQUEST',
      StreamSpecification: {StreamEnabled: true, StreamViewType: 'NEW_IMAGE'},
    }))
    await waitUntilTableExists({client, maxWaitTime: 20, minDelay: 1}, {TableName})
    const {Table} = await client.send(new dynamodb.DescribeTableCommand({TableName}))
    assert.equal(Table.TableStatus, 'ACTIVE')
    assert(Table.CreationDateTime instanceof Date)
  },

  async 'items of every type come back'() {
    const item = {
      player: 'ann', game: 'types', text: 'é😀', yes: true, none: null, list: [1, 'a', [{}]], map: {a: {b: 2.5}},
      bytes: new Uint8Array([0, 255]), texts: new Set(['a', 'b']), numbers: new Set([1, 2]), big: 2n ** 80n,
    }
    await documents.send(new lib.PutCommand({TableName, Item: item}))
    const reading = lib.DynamoDBDocumentClient.from(client, {unmarshallOptions: {wrapNumbers: (value) => Number.isSafeInteger(+value) || value.includes('.') ? +value : BigInt(value)}})
    const {Item} = await reading.send(new lib.GetCommand({TableName, Key: {player: 'ann', game: 'types'}}))
    assert.deepEqual({...Item, bytes: [...Item.bytes]}, {...item, bytes: [0, 255]})
    await documents.send(new lib.DeleteCommand({TableName, Key: {player: 'ann', game: 'types'}}))
  },

  async 'batches, and pages of queries and scans'() {
    for (let start = 0; start < 100; start += 25) {
      const puts = Array.from({length: 25}, (_, at) => start + at).map((number) => ({
        PutRequest: {Item: {player: `p${number % 4}`, game: String(number).padStart(3, '0'), points: number, league: number % 2 ? 'odd' : 'even'}},
      }))
      const {UnprocessedItems} = await documents.send(new lib.BatchWriteCommand({RequestItems: {[TableName]: puts}}))
      assert.deepEqual(UnprocessedItems, {})
    }
    const games = []
    const query = {
      TableName,
      KeyConditionExpression: 'player = :p AND game BETWEEN :low AND :high',
      FilterExpression: 'points <> :none',
      ExpressionAttributeValues: {':p': 'p1', ':low': '010', ':high': '090', ':none': 13},
      ScanIndexForward: false,
    }
    for await (const page of lib.paginateQuery({client: documents, pageSize: 6}, query)) games.push(...page.Items.map(({game}) => game))
    assert.deepEqual(games, Array.from({length: 20}, (_, at) => 89 - 4 * at).filter((n) => n !== 13).map((n) => String(n).padStart(3, '0')))
    let count = 0
    for await (const page of lib.paginateScan({client: documents, pageSize: 7}, {TableName})) count += page.Count
    assert.equal(count, 100)
    const league = await documents.send(new lib.QueryCommand({
      TableName, IndexName: 'by-league', KeyConditionExpression: 'league = :l', ExpressionAttributeValues: {':l': 'odd'}, Select: 'COUNT',
    }))
    assert.equal(league.Count, 50)
    const got = await documents.send(new lib.BatchGetCommand({RequestItems: {[TableName]: {Keys: [{player: 'p1', game: '001'}, {player: 'no', game: 'no'}]}}}))
    assert.deepEqual(got.Responses[TableName].map(({points}) => points), [1])
  },

  async 'updates, conditions and transactions'() {
    const Key = {player: 'p0', game: '000'}
    const counting = {TableName, Key, UpdateExpression: 'ADD points :one', ExpressionAttributeValues: {':one': 1}, ReturnValues: 'UPDATED_NEW'}
    await Promise.all(Array.from({length: 40}, () => documents.send(new lib.UpdateCommand(counting))))
    const {Attributes, ConsumedCapacity} = await documents.send(new lib.UpdateCommand({...counting, ReturnConsumedCapacity: 'TOTAL'}))
    assert.equal(Attributes.points, 41)
    assert(ConsumedCapacity.CapacityUnits >= 1)
    await assert.rejects(
      documents.send(new lib.PutCommand({
        TableName, Item: Key, ConditionExpression: 'attribute_not_exists(player)', ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
      })),
      (error) => error instanceof dynamodb.ConditionalCheckFailedException && error.Item.points.N === '41',
    )
    await assert.rejects(
      documents.send(new lib.TransactWriteCommand({
        TransactItems: [
          {Put: {TableName, Item: {player: 'new', game: 'new'}}},
          {ConditionCheck: {TableName, Key, ConditionExpression: 'points > :p', ExpressionAttributeValues: {':p': 100}}},
        ],
      })),
      (error) => error instanceof dynamodb.TransactionCanceledException
        && error.CancellationReasons.map(({Code}) => Code).join() === 'None,ConditionalCheckFailed',
    )
    await documents.send(new lib.TransactWriteCommand({
      TransactItems: [{Delete: {TableName, Key}}, {Put: {TableName, Item: {player: 'new', game: 'new', points: 1}}}],
    }))
    const {Responses} = await documents.send(new lib.TransactGetCommand({
      TransactItems: [{Get: {TableName, Key}}, {Get: {TableName, Key: {player: 'new', game: 'new'}}}],
    }))
    assert.deepEqual(Responses.map(({Item}) => Item?.points), [undefined, 1])
    await assert.rejects(documents.send(new lib.GetCommand({TableName: 'Nowhere', Key})), dynamodb.ResourceNotFoundException)
    await assert.rejects(
      documents.send(new lib.GetCommand({TableName, Key: {player: 'p0'}})),
      {name: 'ValidationException', message: 'The provided key element does not match the schema'},
    )
  },

  async 'streams'() {
    const reader = new streams.DynamoDBStreamsClient({})
    const {Streams: [{StreamArn}]} = await reader.send(new streams.ListStreamsCommand({TableName}))
    const {StreamDescription} = await reader.send(new streams.DescribeStreamCommand({StreamArn}))
    let records = 0
    for (const {ShardId} of StreamDescription.Shards) {
      let {ShardIterator} = await reader.send(new streams.GetShardIteratorCommand({StreamArn, ShardId, ShardIteratorType: 'TRIM_HORIZON'}))
      for (;;) {
        const page = await reader.send(new streams.GetRecordsCommand({ShardIterator}))
        if (!page.Records.length) break
        assert(page.Records.every(({dynamodb: record}) => record.OldImage === undefined))
        records += page.Records.length
        ShardIterator = page.NextShardIterator
      }
    }
    assert.equal(records, 2 + 100 + 41 + 2)
    reader.destroy()
  },

  async 'the table goes'() {
    await client.send(new dynamodb.DeleteTableCommand({TableName}))
    await waitUntilTableNotExists({client, maxWaitTime: 20, minDelay: 1}, {TableName})
  },
}

for (const [name, tour] of Object.entries(tours)) {
  await tour()
  console.log(name)
}
client.destroy()
