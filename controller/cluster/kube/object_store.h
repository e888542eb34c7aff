#pragma once

// The server's objects of one kind as slim values, found by key "namespace/name" and by the job they belong
// to. An Informer fills it; anyone reads. Thread-safe.
//
// T is a value with ==, and with the members `key`, `job_key`, `resource_version`.
//
// What we wrote ourselves is offered before the watch brings it, and is the newest that is known then:
// nothing older takes its place, neither from a watch nor from a list that was begun before the write. Only a
// list whose version is older than what was seen before, of a server that was restored from a back-up, is
// right in all things. It holds what the API server holds, which bounds it.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/reflector_core.h"

namespace paceline::kube {

// What an Informer needs of a store. The keys of jobs whose objects changed are appended to `changed`; an
// object that came again as it was is no change.
class ObjectSink {
 public:
  using Keys = std::vector<std::string>;
  virtual ~ObjectSink() = default;
  // A list of this version begins: what is put in this round is of it, or of the watch that follows.
  virtual void begin(std::uint64_t round, std::string_view resource_version) = 0;
  virtual void put(const Json& object, std::uint64_t round, Keys& changed) = 0;
  virtual void remove(const Json& object, Keys& changed) = 0;
  // Removes what was put in no round since `round`: the list of that version is complete.
  virtual void sweep(std::uint64_t round, std::string_view resource_version, Keys& changed) = 0;
};

template <typename T>
class ObjectStore final : public ObjectSink {
 public:
  using Value = std::shared_ptr<const T>;
  // Nothing where it is no object of this kind.
  using Decode = std::function<std::optional<T>(const Json& object)>;
  explicit ObjectStore(Decode decode) : decode_(std::move(decode)) {}

  // Null where there is none.
  Value find(const std::string& key) {
    auto state = state_.lock();
    const auto found = state->objects.find(key);
    return found == state->objects.end() ? nullptr : found->second.value;
  }
  // Sorted by key.
  std::vector<Value> of_job(const std::string& job_key) {
    auto state = state_.lock();
    const auto found = state->jobs.find(job_key);
    std::vector<Value> values;
    if (found == state->jobs.end()) return values;
    values.reserve(found->second.size());
    for (const std::string_view key : found->second) {
      values.push_back(state->objects.find(std::string(key))->second.value);
    }
    return values;
  }
  std::vector<std::string> job_keys() {
    auto state = state_.lock();
    std::vector<std::string> keys;
    keys.reserve(state->jobs.size());
    for (const auto& [key, objects] : state->jobs) keys.push_back(key);
    return keys;
  }
  std::size_t size() { return state_.lock()->objects.size(); }

  // Takes the answer to a write of ours before the watch brings it, so that we see what we did. Left out
  // where the watch has been there already.
  void offer(const Json& object) {
    std::optional<T> value = decode_(object);
    if (!value) return;
    auto state = state_.lock();
    if (!is_older(state->version, value->resource_version)) return;
    const auto found = state->objects.find(value->key);
    if (found != state->objects.end() &&
        is_older(value->resource_version, found->second.value->resource_version))
      return;
    const std::uint64_t round = state->round;
    state->insert(*std::move(value), round, /*offered=*/true, nullptr);
  }

  void begin(std::uint64_t round, std::string_view resource_version) override {
    auto state = state_.lock();
    state->round = round;
    state->restored = is_older(resource_version, state->version);
    state->version = resource_version;
  }
  void put(const Json& object, std::uint64_t round, Keys& changed) override {
    std::optional<T> value = decode_(object);
    if (!value) return;
    auto state = state_.lock();
    state->round = round;
    if (state->version.empty() || is_older(state->version, value->resource_version)) {
      state->version = value->resource_version;
    }
    if (const auto found = state->objects.find(value->key);
        found != state->objects.end() && state->is_behind(value->resource_version, found->second)) {
      found->second.round = round;
      return;
    }
    state->insert(*std::move(value), round, /*offered=*/false, &changed);
  }
  void remove(const Json& object, Keys& changed) override {
    const std::optional<T> value = decode_(object);
    if (!value) return;
    auto state = state_.lock();
    if (is_older(state->version, value->resource_version)) state->version = value->resource_version;
    const auto found = state->objects.find(value->key);
    if (found == state->objects.end()) return;
    if (state->is_behind(value->resource_version, found->second)) return;  // of an earlier one of that name
    state->erase(found, changed);
  }
  void sweep(std::uint64_t round, std::string_view resource_version, Keys& changed) override {
    auto state = state_.lock();
    state->version = resource_version;
    state->round = round;
    for (auto each = state->objects.begin(); each != state->objects.end();) {
      const auto here = each++;
      const bool listed = here->second.round == round;
      if (!listed && !state->is_behind(resource_version, here->second)) state->erase(here, changed);
    }
    state->restored = false;
  }

 private:
  struct Entry {
    Value value;
    std::uint64_t round = 0;
    bool offered = false;  // ours, and not yet brought by the watch or a list
  };
  struct State {
    using Objects = std::unordered_map<std::string, Entry>;
    Objects objects;
    std::unordered_map<std::string, std::set<std::string_view>> jobs;  // views of the keys of `objects`
    std::string version;  // the newest that the watch or a list brought
    std::uint64_t round = 0;
    bool restored = false;  // while a list comes whose version is older than what was seen before

    // Whether this version is of a time before a write of ours.
    bool is_behind(std::string_view resource_version, const Entry& entry) const {
      return entry.offered && !restored && is_older(resource_version, entry.value->resource_version);
    }
    void insert(T value, std::uint64_t round, bool offered, Keys* changed) {
      const auto found = objects.find(value.key);
      if (found != objects.end()) {
        // By value: a server that was restored may give one version to two states.
        if (*found->second.value == value) {
          found->second.round = round;
          found->second.offered = found->second.offered && offered;
          return;
        }
        if (found->second.value->job_key != value.job_key) leave(found, changed);
      }
      if (changed != nullptr) changed->push_back(value.job_key);
      const std::string job_key = value.job_key;
      std::string key = value.key;
      auto entry = objects.insert_or_assign(
          std::move(key), Entry{std::make_shared<const T>(std::move(value)), round, offered});
      jobs[job_key].insert(entry.first->first);
    }
    void leave(typename Objects::iterator entry, Keys* changed) {
      const std::string& job_key = entry->second.value->job_key;
      if (changed != nullptr) changed->push_back(job_key);
      const auto job = jobs.find(job_key);
      job->second.erase(entry->first);
      if (job->second.empty()) jobs.erase(job);
    }
    void erase(typename Objects::iterator entry, Keys& changed) {
      leave(entry, &changed);
      objects.erase(entry);
    }
  };

  const Decode decode_;
  Guarded<State> state_;
};

}  // namespace paceline::kube
