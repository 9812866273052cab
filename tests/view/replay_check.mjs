// Replays trainings and compares each state with a recount of the pieces. Reads JSON from the standard input:
// {module, trainings: [{pieces: [[hex, count]], merges: [[left, right, id]], wanted}]}. Prints a summary as JSON.

import { readFileSync } from "node:fs";

const { module, trainings } = JSON.parse(readFileSync(0, "utf8"));
const { TrainingReplay, compareBytes } = await import(module);
let states = 0;

for (const { pieces, merges, wanted } of trainings) {
  const counted = pieces.map(([hex, count]) => ({ bytes: Uint8Array.from(Buffer.from(hex, "hex")), count }));
  const learned = merges.map(([left, right, id]) => ({ left, right, id, count: 0 }));
  const replay = await TrainingReplay.create(counted, learned);
  const expected = [];
  for (let step = 0; step <= learned.length; step += 1) {
    replay.go(step);
    expected.push(check(replay, counted));
    const [best] = replay.top(1);
    if (step < learned.length) {
      const { left, right } = learned[step];
      assert(best.left === left && best.right === right, `step ${step}: the best pair is not the next merge`);
    } else if (step < wanted) {
      assert(!best || best.count < 2, "a pair is left to merge");
    }
    assert(replay.curve[step] === replay.tokens, "the curve differs");
  }
  // Jumps back and forth give the same states.
  for (const share of [0.5, 0.1, 0.9, 0, 1, 0.3, 0.7]) {
    const step = Math.round(share * learned.length);
    replay.go(step);
    assert(check(replay, counted) === expected[step], `the state of step ${step} differs after a jump`);
  }
}
console.log(JSON.stringify({ trainings: trainings.length, states }));

function check(replay, counted) {
  states += 1;
  const counts = new Map();
  let tokens = 0;
  const rows = counted.map(({ bytes, count }, piece) => {
    const symbols = replay.symbols(piece);
    tokens += symbols.length * count;
    const joined = Buffer.concat(symbols.map(({ id }) => replay.tokenBytes(id)));
    assert(joined.equals(Buffer.from(bytes)), "the symbols of a piece are not its bytes");
    for (let index = 1; index < symbols.length; index += 1) {
      const key = `${symbols[index - 1].id} ${symbols[index].id}`;
      counts.set(key, (counts.get(key) ?? 0) + count);
    }
    return symbols.map(({ id, start }) => `${id}@${start}`).join(" ");
  });
  assert(tokens === replay.tokens, "the number of tokens differs");
  assert(counts.size === replay.pairs, "the number of pairs differs");
  const table = [...counts].map(([key, count]) => {
    const [left, right] = key.split(" ").map(Number);
    return { left, right, count };
  });
  table.sort((a, b) => b.count - a.count
    || compareBytes(replay.tokenBytes(b.left), replay.tokenBytes(a.left))
    || compareBytes(replay.tokenBytes(b.right), replay.tokenBytes(a.right)));
  const all = replay.top(table.length + 1);
  assert(JSON.stringify(all) === JSON.stringify(table), "the pair table differs");
  assert(JSON.stringify(replay.top(3)) === JSON.stringify(table.slice(0, 3)), "the top of the table differs");
  for (const { left, right, count } of table.slice(0, 20)) {
    assert(replay.count(left, right) === count, "the count of a pair differs");
  }
  return rows.join("|");
}

function assert(holds, message) {
  if (!holds) throw new Error(message);
}
