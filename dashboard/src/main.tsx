// Starts the page.

import { render } from "preact";
import { startApp } from "./state/app.ts";
import { startPreferences } from "./state/preferences.ts";
import { Shell } from "./views/shell.tsx";

startPreferences();
startApp();
const root = document.getElementById("app")!;
root.textContent = "";
render(<Shell />, root);
