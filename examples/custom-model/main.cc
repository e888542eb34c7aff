// A member that can train one more model on one more data set. Everything else is as in paceline-worker.

#include "moons_data.h"
#include "residual_model.h"
#include "runtime/bin/run_member.h"

int main(int argc, char** argv) {
  paceline::trainer::Registry registry;
  registry.add_model("residual", moons::make_residual_model);
  registry.add_dataset("two-moons", moons::make_moons);
  return paceline::run_member(argc, argv, std::move(registry));
}
