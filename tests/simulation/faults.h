#pragma once

// The faults that strike a world.

#include "tests/simulation/world.h"

namespace paceline::simulation {

struct Faults {
  World& world;

  void strike(FaultKind kind);

 private:
  void on_members(FaultKind kind);
  void on_nodes(FaultKind kind);
  void on_controllers(FaultKind kind);
  void on_job(FaultKind kind);
  void on_speed(FaultKind kind);
  void later(Duration wait, Events::Action action) { world.events_.after(wait, std::move(action)); }
};

}  // namespace paceline::simulation
