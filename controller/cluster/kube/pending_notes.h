#pragma once

// Why pods that have a node don't start: a Secret or a volume that can't be mounted, a sandbox that can't be
// made. Only Warning events tell (https://kubernetes.io/docs/reference/kubectl/generated/kubectl_events);
// the pod's status says ContainerCreating all the time. Whom to ask about, how often, and what was told.
//
// A value; one thread at a time. Bounds: kMaxNotes pods; one question per kBetweenQuestions, whatever the
// number of pods, since the API server reads all of a namespace's events for each; and one at a time, since a
// worker waits for its answer. Where none came nothing is asked for kAfterNoAnswer. Pure.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/cluster.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/pod.h"

namespace paceline::kube {

inline constexpr std::size_t kMaxNotes = 20'000;
inline constexpr Duration kOrdinaryStart = std::chrono::seconds(3);  // nothing is asked before
inline constexpr Duration kBetweenQuestionsOfOne = std::chrono::seconds(10);
inline constexpr Duration kBetweenQuestions = std::chrono::milliseconds(200);
inline constexpr Duration kAfterNoAnswer = std::chrono::seconds(10);

class PendingNotes {
 public:
  using Pods = std::vector<std::shared_ptr<const SlimPod>>;

  // Of a job's pods the one to ask about now; null: none. Those that are not held up any more are forgotten.
  // Each question ends with on_events() or with no_answer().
  std::shared_ptr<const SlimPod> next(const Pods& pods, TimePoint now);
  // The answer: core/v1 Events, in any order, of any object. The newest of this pod's that says why counts.
  void on_events(const SlimPod& pod, const Json::array_t& events);
  void no_answer(TimePoint now);
  // Adds what is known of a pod that does not say why itself.
  void add_to(cluster::Pod& pod) const;

 private:
  struct Note {
    TimePoint first_seen;
    std::optional<TimePoint> asked;
    std::string reason, message;
  };
  std::map<std::string, Note> notes_;           // by uid
  std::optional<TimePoint> asked_, no_answer_;  // the last time, of any pod
  bool asking_ = false;
};

}  // namespace paceline::kube
