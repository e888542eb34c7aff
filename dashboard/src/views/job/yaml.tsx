// The job as it was written.

import { getYaml } from "../../api/client.ts";
import { yamlTokens } from "../../model/yaml.ts";
import { toast } from "../../state/app.ts";
import { useFollow, useResource } from "../../state/resource.ts";
import { Loaded } from "../../components/common.tsx";
import { Icon } from "../../components/icons.tsx";
import type { TabProps } from "./tab.ts";

async function copy(yaml: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(yaml);
    toast("done", "copied");
  } catch {
    toast("failed", "the browser does not let this page copy", "mark the text and copy it yourself");
  }
}

export function Yaml({ job, path }: TabProps) {
  const yaml = useResource((signal) => getYaml(path, signal), [path]);
  useFollow(yaml.reload, job.version);
  return (
    <section class="panel" aria-label="YAML">
      <Loaded resource={yaml} what="the YAML">
        {(all) => (
          <>
            <div class="panel-tools">
              <button type="button" class="button small" onClick={() => void copy(all)}>
                <Icon name="copy" size={14} />
                Copy
              </button>
            </div>
            <pre class="yaml" tabIndex={0} aria-label="The job's YAML">
              {all
                .replace(/\n$/, "")
                .split("\n")
                .map((line, i) => (
                  <div key={i}>
                    {line === ""
                      ? "\n"
                      : yamlTokens(line).map((token, j) => (
                          <span key={j} class={`y-${token.kind}`}>
                            {token.text}
                          </span>
                        ))}
                  </div>
                ))}
            </pre>
          </>
        )}
      </Loaded>
    </section>
  );
}
