#pragma once

// What a program can train beside the built-in models and formats: a user's own, by name. A value that main()
// fills and hands to run_member(); nothing registers itself.
//
//   trainer::Registry registry;
//   registry.add_model("two-moons", [](const model::Parameters& p) { return make_moons_model(p); });
//   registry.add_dataset("two-moons", make_moons);
//   return run_member(argc, argv, std::move(registry));

#include <map>
#include <string>
#include <utility>

#include "base/check.h"
#include "runtime/data/open.h"
#include "runtime/model/model.h"

namespace paceline::trainer {

struct Registry {
  std::map<std::string, model::ModelFactory> models;  // `model: {type: custom, name: ...}`
  data::DatasetFactories datasets;                    // `data: {format: custom, custom: {name: ...}}`

  // REQUIRES: the name is new.
  void add_model(std::string name, model::ModelFactory factory) {
    const bool added = models.emplace(std::move(name), std::move(factory)).second;
    PL_CHECK(added, "a model's name is registered once");
  }
  void add_dataset(std::string name, data::DatasetFactory factory) {
    const bool added = datasets.emplace(std::move(name), std::move(factory)).second;
    PL_CHECK(added, "a data set's name is registered once");
  }
};

}  // namespace paceline::trainer
