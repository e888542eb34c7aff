#include "controller/dashboard/board.h"

#include "base/check.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/next_steps.h"
#include "controller/dashboard/timeline.h"
#include "tests/fuzz/target.h"
#include "tests/support/fake_clock.h"

namespace paceline::fuzz {

namespace {

void check_json(const std::string& text) {
  PL_CHECK(kube::parse_json(text).ok(), "an answer is JSON");
}

}  // namespace

// A TrainingJob's object, as an API server or somebody's status may have it, on the board of a dashboard.
int fuzz_dashboard_board(Input input) {
  const auto object = kube::parse_json(text_of(input));
  if (!object.ok() || !object->is_object()) return 0;
  const FakeClock clock;
  dashboard::Board board(clock);
  board.apply({.objects = {*object}, .removed = {}, .left_out = {}});
  check_json(board.list_json());
  if (const auto text = board.jobs_since(0); text.json != nullptr) check_json(*text.json);
  const std::string key = dashboard::key_of(kube::text_at(*object, {"metadata", "namespace"}),
                                            kube::text_at(*object, {"metadata", "name"}));
  if (const auto text = board.job_json(key)) check_json(*text);
  board.look(key);
  if (const auto text = board.job_since(key, 0); text.json != nullptr) check_json(*text.json);
  check_json(kube::dump(dashboard::next_steps_json(*object, clock.wall_now())));
  check_json(kube::dump(dashboard::timeline_json(*object, {}, {})));
  return 0;
}

}  // namespace paceline::fuzz
