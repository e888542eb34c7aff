#include "controller/cluster/kube/exec_credential.h"

#include "tests/fuzz/target.h"

namespace paceline::fuzz {

int fuzz_exec_credential(Input input) {
  for (const char* version : {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"})
    (void)kube::parse_exec_credential(text_of(input), version);
  return 0;
}

}  // namespace paceline::fuzz
