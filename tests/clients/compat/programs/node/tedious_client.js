// A tedious client that takes part in the conversation of tests/clients/compat/conversation.py.
//
//   node tedious_client.js HOST PORT USER [ENCRYPT CERTIFICATE]        ENCRYPT is true or strict
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');
const { Connection, Request, TYPES } = require('tedious');

const SQL_TYPES = {
  bit: TYPES.Bit, smallint: TYPES.SmallInt, int: TYPES.Int, bigint: TYPES.BigInt, real: TYPES.Real,
  float: TYPES.Float, char: TYPES.NVarChar, datetime: TYPES.DateTime2, date: TYPES.Date, numeric: TYPES.Numeric,
  binary: TYPES.VarBinary, text: TYPES.NVarChar,
};
const DIGITS = { precision: 18, scale: 4 };
const [host, port, user, encrypt, certificate] = process.argv.slice(2);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const encryption = certificate
  ? { encrypt: encrypt === 'true' || encrypt, cryptoCredentialsDetails: { ca: fs.readFileSync(certificate) } }
  : { encrypt: false };

// --- answers ---

function report(kind, value) {
  process.stdout.write(JSON.stringify({ [kind]: value }) + '\n');
}

// A bigint comes as text, since a number of JavaScript would round it: reported as it is.
function tellRow(columns) {
  const values = columns.map(({ value, metadata }) => {
    if (value instanceof Date) {
      return JSON.stringify(shown(value));
    }
    if (Buffer.isBuffer(value)) {
      return JSON.stringify(value.toString('hex'));
    }
    return metadata.type.name === 'IntN' && typeof value === 'string' ? value : JSON.stringify(value);
  });
  process.stdout.write(`{"row": [${values.join(', ')}]}\n`);
}

// With useUTC a Date's UTC time is what the server said; it has milliseconds, and a rest in nanosecondsDelta.
function shown(date) {
  const micros = Math.round((date.nanosecondsDelta || 0) * 1e6);
  return date.toISOString().replace('T', ' ').replace('Z', String(micros).padStart(3, '0'));
}

// --- requests ---

function connected() {
  return new Promise((resolve, reject) => {
    const connection = new Connection({
      server: host,
      authentication: { type: 'default', options: { userName: user, password } },
      options: { port: Number(port), connectTimeout: 60000, requestTimeout: 60000, ...encryption },
    });
    // a failed login's own error has no number
    let number;
    connection.on('errorMessage', (message) => (number = message.number));
    connection.connect((error) => {
      if (error) {
        reject(Object.assign(error, { number }));
      } else {
        connection.on('infoMessage', ({ number, class: severity, message }) =>
          report('message', [number, severity, message]));
        resolve(connection);
      }
    });
  });
}

// Runs a request that `send` gives to the connection; `prepare` may add to it.
function run(text, send, prepare = () => {}) {
  return new Promise((resolve, reject) => {
    const outputs = [];
    let status;
    const request = new Request(text, (error) => (error ? reject(error) : resolve({ status, outputs })));
    request.on('columnMetadata', (columns) => report('row_columns', columns.map((column) => column.colName)));
    request.on('row', tellRow);
    request.on('returnValue', (name, value) => outputs.push(value instanceof Date ? shown(value) : value));
    request.on('doneProc', (count, more, returned) => (status = returned));
    prepare(request);
    send(request);
  });
}

function add(request, params) {
  params.forEach(([, type, name, direction, text]) => {
    const label = name.replace('@', '');
    if (direction === 'out') {
      // without it the scale of a time that is not known yet is 0
      request.addOutputParameter(label, SQL_TYPES[type], null, type === 'datetime' ? { scale: 7 } : {});
    } else {
      request.addParameter(label, SQL_TYPES[type], value(type, text), type === 'numeric' ? DIGITS : {});
    }
  });
}

function value(type, text) {
  if (text === undefined) {
    return null;
  }
  switch (type) {
    case 'bit': return text === '1';
    case 'bigint': return BigInt(text);
    case 'datetime': return new Date(text.replace(' ', 'T') + 'Z');
    case 'date': return new Date(text);
    case 'binary': return Buffer.from(text, 'hex');
    case 'char': case 'text': return text;
    default: return Number(text);
  }
}

const nothing = (act) => new Promise((resolve, reject) => act((error) => (error ? reject(error) : resolve())));

const requests = {
  async rpc(name) {
    const params = await readParams();
    const { status, outputs } = await run(name, (r) => connection.callProcedure(r), (r) => add(r, params));
    report('status', status);
    report('output', outputs);
  },
  async execute(text) {
    const params = await readParams();
    params.forEach((param, place) => (param[2] = `@p${place + 1}`));
    let place = 0;
    const named = text.replace(/\?/g, () => `@p${++place}`);
    await run(named, (r) => connection.execSql(r), (r) => add(r, params));
  },
  language: (text) => run(text, (r) => connection.execSqlBatch(r)),
  begin: () => nothing((done) => connection.beginTransaction(done)),
  commit: () => nothing((done) => connection.commitTransaction(done)),
  rollback: () => nothing((done) => connection.rollbackTransaction(done)),
  again: () => nothing((done) => connection.reset(done)),
  async abandon(text) {
    await run(text, (r) => connection.execSqlBatch(r), (request) => {
      request.removeAllListeners('columnMetadata');
      request.removeAllListeners('row');
      request.once('row', (columns) => {
        tellRow(columns);
        request.cancel();
      });
    }).catch((error) => {
      if (error.code !== 'ECANCEL') {
        throw error;
      }
    });
  },
  cancel: (seconds, text) => run(text, (r) => connection.execSqlBatch(r), (request) => {
    setTimeout(() => request.cancel(), Number(seconds) * 1000);
  }),
  timeout: (seconds, text) => run(text, (r) => connection.execSqlBatch(r), (request) => {
    request.setTimeout(Number(seconds) * 1000);
  }),
};

// --- the conversation ---

async function fields() {
  const { value: line, done } = await lines.next();
  return done ? null : line.split('\t').map((field) =>
    field.replace(/\\(.)/g, (_, escaped) => ({ t: '\t', n: '\n' })[escaped] ?? escaped));
}

async function readParams() {
  const params = [];
  for (let line = await fields(); line[0] !== 'go'; line = await fields()) {
    params.push(line);
  }
  return params;
}

async function answering(act) {
  try {
    await act();
  } catch (error) {
    if (!('code' in error)) {
      throw error;
    }
    report('error', [`${error.constructor.name} ${error.code}`, error.number ?? null, error.message]);
  }
  report('end', 'results');
}

let password;
let connection;

async function main() {
  [password] = await fields();
  await answering(async () => (connection = await connected()));
  if (!connection) {
    process.exit(1);
  }
  for (let request = await fields(); request; request = await fields()) {
    const [name, ...words] = request;
    await answering(() => requests[name](...words));
  }
  connection.close();
}

main();
