// Starts the page.

import { render } from "preact";
import { secret } from "./api/word.ts";
import { tokenIn } from "./model/route.ts";
import { route, startApp } from "./state/app.ts";
import { loadEarly } from "./state/live.ts";
import { startPreferences } from "./state/preferences.ts";
import { Shell } from "./views/shell.tsx";

startPreferences();
if (route.value.view === "jobs" && tokenIn(location.hash) === null && secret() !== "") loadEarly();
startApp();
const root = document.getElementById("app")!;
root.textContent = "";
render(<Shell />, root);
