/**
 * @file Devices of a mesh and the groups in which they communicate. A mesh is named axes with extents; the rank of a device is
 * its place in row-major order, the first axis slowest. Devices that differ along some axes alone are a group:
 *
 *   data=2, tensor=3      tensor →          over data:    {0,3} {1,4} {2,5}
 *                   data  0  1  2           over tensor:  {0,1,2} {3,4,5}
 *                    ↓    3  4  5           over both:    {0,1,2,3,4,5}
 */

/** The devices that one collective connects: every device is in one group, with those that differ from it along `over` alone. */
export interface DeviceGroup {
  readonly mesh: readonly (readonly [name: string, extent: number])[];
  /** Names of axes in the order of the mesh. */
  readonly over: readonly string[];
}

/** Devices in a mesh. */
export const meshSize = ({ mesh }: Pick<DeviceGroup, "mesh">): number => mesh.reduce((n, [, extent]) => n * extent, 1);

/** Devices in each group. */
export function groupSize({ mesh, over }: DeviceGroup): number {
  return mesh.reduce((n, [name, extent]) => (over.includes(name) ? n * extent : n), 1);
}

/** The ranks of the group that a device is in, in order: the place in this list is a device's number in its group. */
export function groupRanks({ mesh, over }: DeviceGroup, rank: number): readonly number[] {
  let ranks = [0];
  let stride = meshSize({ mesh });
  for (const [name, extent] of mesh) {
    stride /= extent;
    const own = Math.floor(rank / stride) % extent;
    const places = over.includes(name) ? Array.from({ length: extent }, (_, i) => i) : [own];
    ranks = ranks.flatMap((base) => places.map((place) => base + place * stride));
  }
  return ranks;
}

/** `data of data=2,tensor=3`. */
export const groupText = ({ mesh, over }: DeviceGroup): string =>
  `${over.join(",")} of ${mesh.map(([name, extent]) => `${name}=${extent}`).join(",")}`;
