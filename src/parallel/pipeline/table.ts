/** @file The table of a schedule as a constant of a program. */
import { tensor } from "../../trace/literal.ts";
import type { Tensor } from "../../trace/tensor.ts";
import { COLUMNS, type PipelineRows } from "./rows.ts";

/** [slots, devices, columns], i32. */
export const tableTensor = ({ table, slots }: PipelineRows, stages: number): Tensor =>
  tensor(table, { shape: [slots, stages, COLUMNS.length] });
