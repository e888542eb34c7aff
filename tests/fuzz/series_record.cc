#include "controller/dashboard/series_record.h"

#include "base/check.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/series_json.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

int fuzz_series_record(Input input) {
  const auto series = dashboard::unpack_series(text_of(input));
  if (!series.ok()) return 0;
  PL_CHECK(kube::parse_json(dashboard::series_json(*series, 1000, 8.0)).ok(), "the page can read it");
  PL_CHECK(kube::parse_json(dashboard::heat_map_json(*series, 0, series->newest(), 400,
                                                     dashboard::parts_named("").value(), kube::Json::array()))
               .ok(),
           "the page can read it");
  PL_CHECK(dashboard::unpack_series(dashboard::pack_series(*series)).ok(), "what is written can be read");
  return 0;
}

}  // namespace paceline::fuzz
