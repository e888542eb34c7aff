// The mock by itself, to work on the page: mock PAGE_FOLDER [story|big|empty|local] [PORT is chosen by the system].

import { MockServer } from "./server.ts";
import { bigWorld, storyWorld, World } from "./world.ts";

const [page = "", which = "story"] = process.argv.slice(2);
const world = which === "big" ? bigWorld() : which === "empty" ? new World() : storyWorld();
const server = new MockServer({ page, world, place: which === "local" ? "Local" : "Cluster" });
await server.start();
server.run(1000);
console.log(`${server.url}#token=one-time`);
