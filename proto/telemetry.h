#pragma once

// Telemetry to and from its messages of coordinator.proto, whose fields have the same names. Pure.

#include "base/telemetry.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline {

// Sets what `value` has, and leaves alone the fields that it is silent of.
void to_wire(const GpuTelemetry& value, v1::GpuStats& message);
void to_wire(const KernelTelemetry& value, v1::KernelStats& message);

// The values of a member's message: within each field's bounds, numbers rounded to thousandths, texts cut to
// 64 bytes. Numbers that are none are left out.
GpuTelemetry telemetry_of(const v1::GpuStats& message);
KernelTelemetry telemetry_of(const v1::KernelStats& message);
StalenessTelemetry telemetry_of(const v1::StalenessStats& message);
// Without the rates, which are between two messages.
ServerTelemetry telemetry_of(const v1::ServerStats& message);

}  // namespace paceline
