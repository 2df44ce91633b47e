(module
  (type (;0;) (func (param i32 i32 i32 i32 i32 i32)))
  (type (;1;) (func (param i32 i32 i32 i32 i32)))
  (type (;2;) (func (param i32 i32)))
  (type (;3;) (func))
  (import "env" "memory" (memory (;0;) 1))
  (func (;0;) (type 0) (param i32 i32 i32 i32 i32 i32)
    (local i32 i32 v128 v128 v128 v128 v128 v128 v128 v128 v128)
    local.get 0
    local.get 2
    i32.const 12
    i32.mul
    i32.add
    local.set 7
    local.get 0
    local.get 7
    i32.ne
    if  ;; label = @1
      loop  ;; label = @2
        local.get 1
        v128.load align=4
        local.set 14
        local.get 1
        v128.load offset=16 align=4
        local.set 15
        local.get 0
        v128.load32_splat
        local.set 16
        local.get 8
        local.get 16
        local.get 14
        f32x4.mul
        f32x4.add
        local.set 8
        local.get 9
        local.get 16
        local.get 15
        f32x4.mul
        f32x4.add
        local.set 9
        local.get 0
        v128.load32_splat offset=4
        local.set 16
        local.get 10
        local.get 16
        local.get 14
        f32x4.mul
        f32x4.add
        local.set 10
        local.get 11
        local.get 16
        local.get 15
        f32x4.mul
        f32x4.add
        local.set 11
        local.get 0
        v128.load32_splat offset=8
        local.set 16
        local.get 12
        local.get 16
        local.get 14
        f32x4.mul
        f32x4.add
        local.set 12
        local.get 13
        local.get 16
        local.get 15
        f32x4.mul
        f32x4.add
        local.set 13
        local.get 0
        i32.const 12
        i32.add
        local.set 0
        local.get 1
        i32.const 32
        i32.add
        local.set 1
        local.get 0
        local.get 7
        i32.ne
        br_if 0 (;@2;)
      end
    end
    local.get 5
    if  ;; label = @1
      local.get 3
      local.set 6
      local.get 6
      v128.load align=4
      local.get 8
      f32x4.add
      local.set 8
      local.get 6
      v128.load offset=16 align=4
      local.get 9
      f32x4.add
      local.set 9
      local.get 6
      local.get 4
      i32.add
      local.set 6
      local.get 6
      v128.load align=4
      local.get 10
      f32x4.add
      local.set 10
      local.get 6
      v128.load offset=16 align=4
      local.get 11
      f32x4.add
      local.set 11
      local.get 6
      local.get 4
      i32.add
      local.set 6
      local.get 6
      v128.load align=4
      local.get 12
      f32x4.add
      local.set 12
      local.get 6
      v128.load offset=16 align=4
      local.get 13
      f32x4.add
      local.set 13
      local.get 6
      local.get 4
      i32.add
      local.set 6
    end
    local.get 3
    local.set 6
    local.get 6
    local.get 8
    v128.store align=4
    local.get 6
    local.get 9
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6
    local.get 6
    local.get 10
    v128.store align=4
    local.get 6
    local.get 11
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6
    local.get 6
    local.get 12
    v128.store align=4
    local.get 6
    local.get 13
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6)
  (func (;1;) (type 0) (param i32 i32 i32 i32 i32 i32)
    (local i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 v128 v128 i32 i32 i32 i32 i32 i32 i32 i32 i32 v128 v128 v128 v128)
    local.get 5
    local.tee 14
    i32.const 192
    i32.add
    local.tee 15
    i32.const 256
    i32.add
    local.set 16
    i32.const 0
    local.set 7
    block  ;; label = @1
      loop  ;; label = @2
        local.get 7
        i32.const 4
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 7
        i32.const 8
        i32.add
        local.tee 13
        i32.const 4
        i32.gt_s
        if  ;; label = @3
          i32.const 4
          local.set 13
        end
        i32.const 0
        local.set 6
        block  ;; label = @3
          loop  ;; label = @4
            local.get 6
            i32.const 6
            i32.lt_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 6
            i32.const 6
            i32.add
            local.tee 12
            i32.const 6
            i32.gt_s
            if  ;; label = @5
              i32.const 6
              local.set 12
            end
            i32.const 0
            local.set 8
            i32.const 8
            local.set 11
            local.get 6
            local.set 10
            block  ;; label = @5
              loop  ;; label = @6
                local.get 10
                local.get 12
                i32.lt_s
                i32.eqz
                br_if 1 (;@5;)
                local.get 14
                local.get 10
                local.get 6
                i32.sub
                local.get 11
                i32.mul
                i32.const 4
                i32.mul
                i32.add
                local.set 18
                local.get 8
                local.tee 21
                local.get 11
                i32.add
                local.set 22
                local.get 1
                local.get 21
                local.get 10
                i32.const 8
                i32.mul
                i32.add
                i32.const 2
                i32.shl
                i32.add
                local.set 23
                block  ;; label = @7
                  loop  ;; label = @8
                    local.get 21
                    local.get 22
                    i32.lt_s
                    i32.eqz
                    br_if 1 (;@7;)
                    local.get 18
                    local.get 23
                    v128.load32_zero
                    v128.store32_lane 0
                    local.get 18
                    local.get 23
                    v128.load32_zero offset=32
                    v128.store32_lane offset=4 0
                    local.get 18
                    local.get 23
                    v128.load32_zero offset=64
                    v128.store32_lane offset=8 0
                    local.get 23
                    i32.const 4
                    i32.add
                    local.set 23
                    local.get 18
                    i32.const 12
                    i32.add
                    local.set 18
                    local.get 21
                    i32.const 1
                    i32.add
                    local.set 21
                    br 0 (;@8;)
                  end
                end
                local.get 10
                i32.const 3
                i32.add
                local.set 10
                br 0 (;@6;)
              end
            end
            local.get 7
            local.set 9
            block  ;; label = @5
              loop  ;; label = @6
                local.get 9
                local.get 13
                i32.lt_s
                i32.eqz
                br_if 1 (;@5;)
                local.get 15
                local.set 18
                local.get 8
                local.tee 24
                local.get 11
                i32.add
                local.set 25
                local.get 9
                i32.const 4
                i32.lt_u
                local.set 26
                local.get 9
                i32.const 1
                i32.add
                i32.const 4
                i32.lt_u
                local.set 27
                local.get 9
                i32.const 2
                i32.add
                i32.const 4
                i32.lt_u
                local.set 28
                local.get 9
                i32.const 3
                i32.add
                i32.const 4
                i32.lt_u
                local.set 29
                local.get 9
                i32.const 4
                i32.add
                i32.const 4
                i32.lt_u
                local.set 30
                local.get 9
                i32.const 5
                i32.add
                i32.const 4
                i32.lt_u
                local.set 31
                local.get 9
                i32.const 6
                i32.add
                i32.const 4
                i32.lt_u
                local.set 32
                local.get 9
                i32.const 7
                i32.add
                i32.const 4
                i32.lt_u
                local.set 33
                local.get 2
                local.get 24
                i32.const 4
                i32.mul
                local.get 9
                i32.add
                i32.const 2
                i32.shl
                i32.add
                local.set 34
                block  ;; label = @7
                  loop  ;; label = @8
                    local.get 24
                    local.get 25
                    i32.lt_s
                    i32.eqz
                    br_if 1 (;@7;)
                    local.get 18
                    local.get 26
                    local.get 29
                    i32.and
                    if (result v128)  ;; label = @9
                      local.get 34
                      v128.load align=4
                    else
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      local.set 35
                      local.get 26
                      if  ;; label = @10
                        local.get 34
                        local.get 35
                        v128.load32_lane 0
                        local.set 35
                      end
                      local.get 27
                      if  ;; label = @10
                        local.get 34
                        i32.const 4
                        i32.add
                        local.get 35
                        v128.load32_lane 1
                        local.set 35
                      end
                      local.get 28
                      if  ;; label = @10
                        local.get 34
                        i32.const 8
                        i32.add
                        local.get 35
                        v128.load32_lane 2
                        local.set 35
                      end
                      local.get 29
                      if  ;; label = @10
                        local.get 34
                        i32.const 12
                        i32.add
                        local.get 35
                        v128.load32_lane 3
                        local.set 35
                      end
                      local.get 35
                    end
                    v128.store align=4
                    local.get 18
                    local.get 30
                    local.get 33
                    i32.and
                    if (result v128)  ;; label = @9
                      local.get 34
                      i32.const 16
                      i32.add
                      v128.load align=4
                    else
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      local.set 36
                      local.get 30
                      if  ;; label = @10
                        local.get 34
                        i32.const 16
                        i32.add
                        local.get 36
                        v128.load32_lane 0
                        local.set 36
                      end
                      local.get 31
                      if  ;; label = @10
                        local.get 34
                        i32.const 20
                        i32.add
                        local.get 36
                        v128.load32_lane 1
                        local.set 36
                      end
                      local.get 32
                      if  ;; label = @10
                        local.get 34
                        i32.const 24
                        i32.add
                        local.get 36
                        v128.load32_lane 2
                        local.set 36
                      end
                      local.get 33
                      if  ;; label = @10
                        local.get 34
                        i32.const 28
                        i32.add
                        local.get 36
                        v128.load32_lane 3
                        local.set 36
                      end
                      local.get 36
                    end
                    v128.store offset=16 align=4
                    local.get 34
                    i32.const 16
                    i32.add
                    local.set 34
                    local.get 18
                    i32.const 32
                    i32.add
                    local.set 18
                    local.get 24
                    i32.const 1
                    i32.add
                    local.set 24
                    br 0 (;@8;)
                  end
                end
                local.get 6
                local.set 10
                block  ;; label = @7
                  loop  ;; label = @8
                    local.get 10
                    local.get 12
                    i32.lt_s
                    i32.eqz
                    br_if 1 (;@7;)
                    local.get 16
                    local.set 17
                    local.get 14
                    local.get 10
                    local.get 6
                    i32.sub
                    local.get 11
                    i32.mul
                    i32.const 4
                    i32.mul
                    i32.add
                    local.get 15
                    local.get 11
                    local.get 17
                    i32.const 32
                    i32.const 0
                    call 0
                    local.get 9
                    i32.const 8
                    i32.add
                    local.tee 37
                    i32.const 4
                    i32.gt_s
                    if  ;; label = @9
                      i32.const 4
                      local.set 37
                    end
                    local.get 10
                    i32.const 3
                    i32.add
                    local.tee 39
                    i32.const 6
                    i32.gt_s
                    if  ;; label = @9
                      i32.const 6
                      local.set 39
                    end
                    local.get 17
                    local.set 40
                    local.get 10
                    local.set 38
                    block  ;; label = @9
                      loop  ;; label = @10
                        local.get 38
                        local.get 39
                        i32.lt_s
                        i32.eqz
                        br_if 1 (;@9;)
                        local.get 9
                        local.set 41
                        local.get 0
                        local.get 38
                        i32.const 4
                        i32.mul
                        local.get 41
                        i32.add
                        i32.const 2
                        i32.shl
                        i32.add
                        local.set 42
                        local.get 3
                        local.get 38
                        i32.const 4
                        i32.mul
                        local.get 41
                        i32.add
                        i32.const 2
                        i32.shl
                        i32.add
                        local.set 43
                        local.get 4
                        local.get 38
                        i32.const 4
                        i32.mul
                        local.get 41
                        i32.add
                        i32.const 2
                        i32.shl
                        i32.add
                        local.set 44
                        local.get 40
                        local.set 45
                        block  ;; label = @11
                          loop  ;; label = @12
                            local.get 41
                            i32.const 4
                            i32.add
                            local.get 37
                            i32.le_s
                            i32.eqz
                            br_if 1 (;@11;)
                            local.get 45
                            v128.load align=4
                            local.set 46
                            local.get 46
                            v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                            f32x4.max
                            local.tee 47
                            local.set 48
                            local.get 47
                            local.get 42
                            v128.load align=4
                            f32x4.sub
                            local.set 49
                            local.get 43
                            local.get 48
                            v128.store align=4
                            local.get 44
                            local.get 49
                            v128.store align=4
                            local.get 42
                            i32.const 16
                            i32.add
                            local.set 42
                            local.get 43
                            i32.const 16
                            i32.add
                            local.set 43
                            local.get 44
                            i32.const 16
                            i32.add
                            local.set 44
                            local.get 41
                            i32.const 4
                            i32.add
                            local.set 41
                            local.get 45
                            i32.const 16
                            i32.add
                            local.set 45
                            br 0 (;@12;)
                          end
                        end
                        local.get 40
                        i32.const 32
                        i32.add
                        local.set 40
                        local.get 38
                        i32.const 1
                        i32.add
                        local.set 38
                        br 0 (;@10;)
                      end
                    end
                    local.get 10
                    i32.const 3
                    i32.add
                    local.set 10
                    br 0 (;@8;)
                  end
                end
                local.get 9
                i32.const 8
                i32.add
                local.set 9
                br 0 (;@6;)
              end
            end
            local.get 6
            i32.const 6
            i32.add
            local.set 6
            br 0 (;@4;)
          end
        end
        local.get 7
        i32.const 8
        i32.add
        local.set 7
        br 0 (;@2;)
      end
    end)
  (func (;2;) (type 0) (param i32 i32 i32 i32 i32 i32)
    (local i32 i32 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128)
    local.get 0
    local.get 2
    i32.const 16
    i32.mul
    i32.add
    local.set 7
    local.get 0
    local.get 7
    i32.ne
    if  ;; label = @1
      loop  ;; label = @2
        local.get 1
        v128.load align=4
        local.set 16
        local.get 1
        v128.load offset=16 align=4
        local.set 17
        local.get 0
        v128.load32_splat
        local.set 18
        local.get 8
        local.get 18
        local.get 16
        f32x4.mul
        f32x4.add
        local.set 8
        local.get 9
        local.get 18
        local.get 17
        f32x4.mul
        f32x4.add
        local.set 9
        local.get 0
        v128.load32_splat offset=4
        local.set 18
        local.get 10
        local.get 18
        local.get 16
        f32x4.mul
        f32x4.add
        local.set 10
        local.get 11
        local.get 18
        local.get 17
        f32x4.mul
        f32x4.add
        local.set 11
        local.get 0
        v128.load32_splat offset=8
        local.set 18
        local.get 12
        local.get 18
        local.get 16
        f32x4.mul
        f32x4.add
        local.set 12
        local.get 13
        local.get 18
        local.get 17
        f32x4.mul
        f32x4.add
        local.set 13
        local.get 0
        v128.load32_splat offset=12
        local.set 18
        local.get 14
        local.get 18
        local.get 16
        f32x4.mul
        f32x4.add
        local.set 14
        local.get 15
        local.get 18
        local.get 17
        f32x4.mul
        f32x4.add
        local.set 15
        local.get 0
        i32.const 16
        i32.add
        local.set 0
        local.get 1
        i32.const 32
        i32.add
        local.set 1
        local.get 0
        local.get 7
        i32.ne
        br_if 0 (;@2;)
      end
    end
    local.get 5
    if  ;; label = @1
      local.get 3
      local.set 6
      local.get 6
      v128.load align=4
      local.get 8
      f32x4.add
      local.set 8
      local.get 6
      v128.load offset=16 align=4
      local.get 9
      f32x4.add
      local.set 9
      local.get 6
      local.get 4
      i32.add
      local.set 6
      local.get 6
      v128.load align=4
      local.get 10
      f32x4.add
      local.set 10
      local.get 6
      v128.load offset=16 align=4
      local.get 11
      f32x4.add
      local.set 11
      local.get 6
      local.get 4
      i32.add
      local.set 6
      local.get 6
      v128.load align=4
      local.get 12
      f32x4.add
      local.set 12
      local.get 6
      v128.load offset=16 align=4
      local.get 13
      f32x4.add
      local.set 13
      local.get 6
      local.get 4
      i32.add
      local.set 6
      local.get 6
      v128.load align=4
      local.get 14
      f32x4.add
      local.set 14
      local.get 6
      v128.load offset=16 align=4
      local.get 15
      f32x4.add
      local.set 15
      local.get 6
      local.get 4
      i32.add
      local.set 6
    end
    local.get 3
    local.set 6
    local.get 6
    local.get 8
    v128.store align=4
    local.get 6
    local.get 9
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6
    local.get 6
    local.get 10
    v128.store align=4
    local.get 6
    local.get 11
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6
    local.get 6
    local.get 12
    v128.store align=4
    local.get 6
    local.get 13
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6
    local.get 6
    local.get 14
    v128.store align=4
    local.get 6
    local.get 15
    v128.store offset=16 align=4
    local.get 6
    local.get 4
    i32.add
    local.set 6)
  (func (;3;) (type 1) (param i32 i32 i32 i32 i32)
    (local i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 i32 i32 i32 i32 i32 i32 i32 v128 v128)
    local.get 4
    local.tee 13
    i32.const 192
    i32.add
    local.tee 14
    i32.const 192
    i32.add
    local.set 15
    i32.const 0
    local.set 6
    block  ;; label = @1
      loop  ;; label = @2
        local.get 6
        i32.const 4
        i32.lt_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 6
        i32.const 8
        i32.add
        local.tee 12
        i32.const 4
        i32.gt_s
        if  ;; label = @3
          i32.const 4
          local.set 12
        end
        i32.const 0
        local.set 5
        block  ;; label = @3
          loop  ;; label = @4
            local.get 5
            i32.const 8
            i32.lt_s
            i32.eqz
            br_if 1 (;@3;)
            local.get 5
            i32.const 8
            i32.add
            local.tee 11
            i32.const 8
            i32.gt_s
            if  ;; label = @5
              i32.const 8
              local.set 11
            end
            i32.const 0
            local.set 7
            i32.const 6
            local.set 10
            local.get 5
            local.set 9
            block  ;; label = @5
              loop  ;; label = @6
                local.get 9
                local.get 11
                i32.lt_s
                i32.eqz
                br_if 1 (;@5;)
                local.get 13
                local.get 9
                local.get 5
                i32.sub
                local.get 10
                i32.mul
                i32.const 4
                i32.mul
                i32.add
                local.set 17
                local.get 7
                local.tee 20
                local.get 10
                i32.add
                local.set 21
                local.get 0
                local.get 20
                i32.const 8
                i32.mul
                local.get 9
                i32.add
                i32.const 2
                i32.shl
                i32.add
                local.set 22
                block  ;; label = @7
                  loop  ;; label = @8
                    local.get 20
                    local.get 21
                    i32.lt_s
                    i32.eqz
                    br_if 1 (;@7;)
                    local.get 17
                    local.get 22
                    v128.load align=4
                    v128.store align=4
                    local.get 22
                    i32.const 32
                    i32.add
                    local.set 22
                    local.get 17
                    i32.const 16
                    i32.add
                    local.set 17
                    local.get 20
                    i32.const 1
                    i32.add
                    local.set 20
                    br 0 (;@8;)
                  end
                end
                local.get 9
                i32.const 4
                i32.add
                local.set 9
                br 0 (;@6;)
              end
            end
            local.get 6
            local.set 8
            block  ;; label = @5
              loop  ;; label = @6
                local.get 8
                local.get 12
                i32.lt_s
                i32.eqz
                br_if 1 (;@5;)
                local.get 14
                local.set 17
                local.get 7
                local.tee 23
                local.get 10
                i32.add
                local.set 24
                local.get 8
                i32.const 4
                i32.lt_u
                local.set 25
                local.get 8
                i32.const 1
                i32.add
                i32.const 4
                i32.lt_u
                local.set 26
                local.get 8
                i32.const 2
                i32.add
                i32.const 4
                i32.lt_u
                local.set 27
                local.get 8
                i32.const 3
                i32.add
                i32.const 4
                i32.lt_u
                local.set 28
                local.get 8
                i32.const 4
                i32.add
                i32.const 4
                i32.lt_u
                local.set 29
                local.get 8
                i32.const 5
                i32.add
                i32.const 4
                i32.lt_u
                local.set 30
                local.get 8
                i32.const 6
                i32.add
                i32.const 4
                i32.lt_u
                local.set 31
                local.get 8
                i32.const 7
                i32.add
                i32.const 4
                i32.lt_u
                local.set 32
                local.get 1
                local.get 23
                i32.const 4
                i32.mul
                local.get 8
                i32.add
                i32.const 2
                i32.shl
                i32.add
                local.set 33
                local.get 2
                local.get 23
                i32.const 4
                i32.mul
                local.get 8
                i32.add
                i32.const 2
                i32.shl
                i32.add
                local.set 34
                block  ;; label = @7
                  loop  ;; label = @8
                    local.get 23
                    local.get 24
                    i32.lt_s
                    i32.eqz
                    br_if 1 (;@7;)
                    local.get 17
                    local.get 25
                    local.get 28
                    i32.and
                    if (result v128)  ;; label = @9
                      local.get 33
                      v128.load align=4
                      local.tee 35
                      local.get 35
                      f32x4.add
                      v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      local.get 34
                      v128.load align=4
                      f32x4.lt
                      v128.bitselect
                      f32x4.mul
                    else
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      local.set 36
                      local.get 25
                      if  ;; label = @10
                        local.get 36
                        local.get 33
                        v128.load32_zero
                        local.tee 37
                        local.get 37
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 16 17 18 19 4 5 6 7 8 9 10 11 12 13 14 15
                        local.set 36
                      end
                      local.get 26
                      if  ;; label = @10
                        local.get 36
                        local.get 33
                        i32.const 4
                        i32.add
                        v128.load32_zero
                        local.tee 38
                        local.get 38
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 4
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 0 1 2 3 16 17 18 19 8 9 10 11 12 13 14 15
                        local.set 36
                      end
                      local.get 27
                      if  ;; label = @10
                        local.get 36
                        local.get 33
                        i32.const 8
                        i32.add
                        v128.load32_zero
                        local.tee 39
                        local.get 39
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 8
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 12 13 14 15
                        local.set 36
                      end
                      local.get 28
                      if  ;; label = @10
                        local.get 36
                        local.get 33
                        i32.const 12
                        i32.add
                        v128.load32_zero
                        local.tee 40
                        local.get 40
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 12
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 16 17 18 19
                        local.set 36
                      end
                      local.get 36
                    end
                    v128.store align=4
                    local.get 17
                    local.get 29
                    local.get 32
                    i32.and
                    if (result v128)  ;; label = @9
                      local.get 33
                      i32.const 16
                      i32.add
                      v128.load align=4
                      local.tee 41
                      local.get 41
                      f32x4.add
                      v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      local.get 34
                      i32.const 16
                      i32.add
                      v128.load align=4
                      f32x4.lt
                      v128.bitselect
                      f32x4.mul
                    else
                      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                      local.set 42
                      local.get 29
                      if  ;; label = @10
                        local.get 42
                        local.get 33
                        i32.const 16
                        i32.add
                        v128.load32_zero
                        local.tee 43
                        local.get 43
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 16
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 16 17 18 19 4 5 6 7 8 9 10 11 12 13 14 15
                        local.set 42
                      end
                      local.get 30
                      if  ;; label = @10
                        local.get 42
                        local.get 33
                        i32.const 20
                        i32.add
                        v128.load32_zero
                        local.tee 44
                        local.get 44
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 20
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 0 1 2 3 16 17 18 19 8 9 10 11 12 13 14 15
                        local.set 42
                      end
                      local.get 31
                      if  ;; label = @10
                        local.get 42
                        local.get 33
                        i32.const 24
                        i32.add
                        v128.load32_zero
                        local.tee 45
                        local.get 45
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 24
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 12 13 14 15
                        local.set 42
                      end
                      local.get 32
                      if  ;; label = @10
                        local.get 42
                        local.get 33
                        i32.const 28
                        i32.add
                        v128.load32_zero
                        local.tee 46
                        local.get 46
                        f32x4.add
                        v128.const i32x4 0x3f800000 0x3f800000 0x3f800000 0x3f800000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
                        local.get 34
                        i32.const 28
                        i32.add
                        v128.load32_zero
                        f32x4.lt
                        v128.bitselect
                        f32x4.mul
                        i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 16 17 18 19
                        local.set 42
                      end
                      local.get 42
                    end
                    v128.store offset=16 align=4
                    local.get 33
                    i32.const 16
                    i32.add
                    local.set 33
                    local.get 34
                    i32.const 16
                    i32.add
                    local.set 34
                    local.get 17
                    i32.const 32
                    i32.add
                    local.set 17
                    local.get 23
                    i32.const 1
                    i32.add
                    local.set 23
                    br 0 (;@8;)
                  end
                end
                local.get 5
                local.set 9
                block  ;; label = @7
                  loop  ;; label = @8
                    local.get 9
                    local.get 11
                    i32.lt_s
                    i32.eqz
                    br_if 1 (;@7;)
                    local.get 15
                    local.set 16
                    local.get 13
                    local.get 9
                    local.get 5
                    i32.sub
                    local.get 10
                    i32.mul
                    i32.const 4
                    i32.mul
                    i32.add
                    local.get 14
                    local.get 10
                    local.get 16
                    i32.const 32
                    i32.const 0
                    call 2
                    local.get 8
                    i32.const 8
                    i32.add
                    local.tee 47
                    i32.const 4
                    i32.gt_s
                    if  ;; label = @9
                      i32.const 4
                      local.set 47
                    end
                    local.get 9
                    i32.const 4
                    i32.add
                    local.tee 49
                    i32.const 8
                    i32.gt_s
                    if  ;; label = @9
                      i32.const 8
                      local.set 49
                    end
                    local.get 16
                    local.set 50
                    local.get 9
                    local.set 48
                    block  ;; label = @9
                      loop  ;; label = @10
                        local.get 48
                        local.get 49
                        i32.lt_s
                        i32.eqz
                        br_if 1 (;@9;)
                        local.get 8
                        local.set 51
                        local.get 3
                        local.get 48
                        i32.const 4
                        i32.mul
                        local.get 51
                        i32.add
                        i32.const 2
                        i32.shl
                        i32.add
                        local.set 52
                        local.get 50
                        local.set 53
                        block  ;; label = @11
                          loop  ;; label = @12
                            local.get 51
                            i32.const 4
                            i32.add
                            local.get 47
                            i32.le_s
                            i32.eqz
                            br_if 1 (;@11;)
                            local.get 53
                            v128.load align=4
                            local.set 54
                            local.get 54
                            local.set 55
                            local.get 52
                            local.get 55
                            v128.store align=4
                            local.get 52
                            i32.const 16
                            i32.add
                            local.set 52
                            local.get 51
                            i32.const 4
                            i32.add
                            local.set 51
                            local.get 53
                            i32.const 16
                            i32.add
                            local.set 53
                            br 0 (;@12;)
                          end
                        end
                        local.get 50
                        i32.const 32
                        i32.add
                        local.set 50
                        local.get 48
                        i32.const 1
                        i32.add
                        local.set 48
                        br 0 (;@10;)
                      end
                    end
                    local.get 9
                    i32.const 4
                    i32.add
                    local.set 9
                    br 0 (;@8;)
                  end
                end
                local.get 8
                i32.const 8
                i32.add
                local.set 8
                br 0 (;@6;)
              end
            end
            local.get 5
            i32.const 8
            i32.add
            local.set 5
            br 0 (;@4;)
          end
        end
        local.get 6
        i32.const 8
        i32.add
        local.set 6
        br 0 (;@2;)
      end
    end)
  (func (;4;) (type 2) (param i32 i32)
    (local v128 v128 v128 v128 i32 i32 i32 v128 v128 v128 v128 v128 v128 v128)
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 2
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 3
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 4
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    local.set 5
    i32.const 0
    local.set 6
    local.get 0
    local.get 6
    i32.const 2
    i32.shl
    i32.add
    local.set 7
    i32.const 0
    local.set 8
    block  ;; label = @1
      loop  ;; label = @2
        local.get 8
        i32.const 8
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 2
        local.get 7
        v128.load align=4
        local.tee 9
        local.get 9
        f32x4.mul
        f32x4.add
        local.set 2
        local.get 3
        local.get 7
        v128.load offset=16 align=4
        local.tee 10
        local.get 10
        f32x4.mul
        f32x4.add
        local.set 3
        local.get 4
        local.get 7
        v128.load offset=32 align=4
        local.tee 11
        local.get 11
        f32x4.mul
        f32x4.add
        local.set 4
        local.get 5
        local.get 7
        v128.load offset=48 align=4
        local.tee 12
        local.get 12
        f32x4.mul
        f32x4.add
        local.set 5
        local.get 7
        i32.const 64
        i32.add
        local.set 7
        local.get 8
        i32.const 16
        i32.add
        local.set 8
        br 0 (;@2;)
      end
    end
    block  ;; label = @1
      loop  ;; label = @2
        local.get 8
        i32.const 20
        i32.le_s
        i32.eqz
        br_if 1 (;@1;)
        local.get 2
        local.get 7
        v128.load align=4
        local.tee 13
        local.get 13
        f32x4.mul
        f32x4.add
        local.set 2
        local.get 7
        i32.const 16
        i32.add
        local.set 7
        local.get 8
        i32.const 4
        i32.add
        local.set 8
        br 0 (;@2;)
      end
    end
    local.get 2
    local.get 3
    f32x4.add
    local.get 4
    local.get 5
    f32x4.add
    f32x4.add
    local.set 14
    local.get 14
    local.get 14
    local.get 14
    i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7
    f32x4.add
    local.set 14
    local.get 14
    local.get 14
    local.get 14
    i8x16.shuffle 4 5 6 7 8 9 10 11 12 13 14 15 0 1 2 3
    f32x4.add
    local.set 14
    local.get 14
    local.set 15
    local.get 1
    local.get 15
    v128.store32_lane 0)
  (func (;5;) (type 3)
    i32.const 1024
    i32.const 576
    i32.const 768
    i32.const 1024
    i32.const 896
    i32.const 0
    call 1
    i32.const 576
    i32.const 896
    i32.const 1024
    i32.const 768
    i32.const 0
    call 3
    i32.const 896
    i32.const 0
    call 4)
  (func (;6;) (type 3)
    call 5)
  (export "run" (func 6)))
