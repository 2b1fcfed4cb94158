// The official client, from the folder that the caller has installed it into (see tests/interop/node.py).
import { createRequire } from "node:module";
import { join } from "node:path";

const modules = process.env.EXEUNT_INTEROP_MODULES;
if (!modules) throw new Error("EXEUNT_INTEROP_MODULES names no folder: set it to where npm installed package.json");

export const { CopilotClient, RuntimeConnection, approveAll } = createRequire(join(modules, "any.js"))(
    "@github/copilot-sdk",
);
