/** @file Names of ATen operations that are the same operation: aliases, forms for functional graphs. */

/** Names of one operation, by the name that it has in other tables. */
const SAME: Readonly<Record<string, string>> = {
  ...{ multiply: "mul", divide: "div", subtract: "sub", absolute: "abs", fix: "trunc", ger: "outer" },
  ...{ arctan: "atan", arctan2: "atan2", arcsin: "asin", arccos: "acos", arctanh: "atanh" },
  ...{ arcsinh: "asinh", arccosh: "acosh", moveaxis: "movedim", nll_loss2d: "nll_loss", linalg_matmul: "matmul" },
  ...{ greater: "gt", less: "lt", greater_equal: "ge", less_equal: "le", not_equal: "ne" },
  ...{ concatenate: "cat", row_stack: "vstack", vdot: "dot", special_erf: "erf", special_expit: "sigmoid" },
  ...{ special_log1p: "log1p", special_expm1: "expm1", special_exp2: "exp2", special_logit: "logit" },
  ...{ special_softmax: "softmax", special_log_softmax: "log_softmax", special_xlogy: "xlogy" },
  ...{
    special_digamma: "digamma",
    special_gammaln: "lgamma",
    special_erfinv: "erfinv",
    special_erfc: "erfc",
    special_round: "round",
  },
  ...{ unsafe_split: "split", unsafe_chunk: "chunk", unsafe_split_with_sizes: "split_with_sizes" },
  ...{ select_copy: "select", expand_copy: "expand", view_copy: "view", permute_copy: "permute", t_copy: "t" },
  ...{ squeeze_copy: "squeeze", unsqueeze_copy: "unsqueeze", transpose_copy: "transpose", slice_copy: "slice" },
  ...{ split_copy: "split", unbind_copy: "unbind", alias_copy: "alias", as_strided_copy: "as_strided" },
  ...{ diagonal_copy: "diagonal", _reshape_copy: "view", linalg_diagonal: "diagonal" },
};

/** The name that an operation has in tables. */
export const usualName = (name: string): string => (Object.hasOwn(SAME, name) ? (SAME[name] as string) : name);
