#pragma once

// Which files of a pod outlive it: those on a volume that is not its own. Pure.

#include <string_view>

#include "controller/api/types.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

// Whether what the trainer of this pod template (as the job has it: manifest.h adds the work folder) writes
// to `path` is there for a later pod of the template. The volume is that of the mount whose path is the
// longest that `path` lies in; a path that is not absolute begins in the container's workingDir. emptyDir and
// ephemeral volumes go with their pod; so does what lies on no volume. What can't be known (the image's own
// working directory, an inline csi volume) counts as there.
bool keeps_files(const Json& pod_template, std::string_view path);

// Whether the checkpoints of a job, of which `object` is the TrainingJob as the API server has it, are there
// for its next attempt. True where it makes none.
bool keeps_checkpoints(const api::TrainingJob& job, const Json& object);

}  // namespace paceline::kube
