#include "controller/cluster/kube/kubeconfig.h"

#include "base/check.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

int fuzz_kubeconfig(Input input) {
  const auto config = kube::parse_kubeconfig(text_of(input), "/home/ada/.kube/config");
  if (!config.ok()) return 0;
  const kube::Kubeconfig merged = kube::merge_kubeconfigs({*config, *config});
  PL_CHECK(merged.contexts.size() <= config->contexts.size(), "a name counts once");
  (void)kube::select_context(merged, "");
  for (const kube::KubeconfigContext& context : merged.contexts) {
    const auto target = kube::select_context(merged, context.name);
    PL_CHECK(!target.ok() || target->context == context.name || context.name.empty(),
             "the context that was asked for");
  }
  return 0;
}

}  // namespace paceline::fuzz
