// local_cluster_owner ROOT MARK PODS COMMAND...: a process that owns a LocalCluster with some pods and waits
// to be killed.

#include <unistd.h>

#include <cstdlib>

#include "controller/cluster/local/local_cluster.h"
#include "tests/integration/local_cluster/processes.h"
#include "tests/support/paths.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const paceline::SystemClock clock;
  auto cluster = paceline::cluster::LocalCluster::make(
      {argv[1], paceline::binary_path("bin/paceline-pod"), {{paceline::kMarkName, argv[2]}}}, clock);
  if (!cluster.ok()) return 1;
  for (int i = 0; i < std::atoi(argv[3]); ++i) {
    paceline::cluster::PodSpec spec;
    spec.name = "pod-" + std::to_string(i);
    spec.job = "job";
    spec.command.assign(argv + 4, argv + argc);
    if (!(*cluster)->create_pod(spec).ok()) return 1;
  }
  for (;;) ::pause();
}
