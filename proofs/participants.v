(* Theorem B: close groups for participants, over all cohorts. Anatomy is the case without cuts.

   The program of the model: the people of each cohort are a part. Counts of values decide whether a part is tried, and where it would be cut. Rings are drawn
   uniformly. A cut passes if, of every value, the rings that touch a side and have the value are at most 1/m of the people of the side. *)

From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From proofs Require Import reader dealing cuts.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.Theory GRing.Theory Num.Theory.
Local Open Scope group_scope.

Section Participants.

Variables (n m : nat) (V L Z : finType).
Implicit Types (A B : {set 'I_n}) (r : {perm 'I_n}) (t : table n V).

Definition lot := (Z * {perm 'I_n})%type.
Definition act r (x : lot) : lot := (x.1, r * x.2).
Definition shown := {set {set 'I_n} * {set V}}.
Definition output := seq ({set 'I_n} * shown).

(* What decides on a part may also look at the releases of earlier cohorts. It looks at counts of the part, and at anything that does not depend on values. *)
Variable choose : output -> {set 'I_n} -> {ffun V -> nat} -> option ({set 'I_n} * {set 'I_n}).
Variable plan : output -> {set 'I_n} -> {ffun V -> nat} -> Z -> V -> nat -> L.
Hypothesis two : forall past A c A1 A2,
  choose past A c = Some (A1, A2) -> [/\ A1 :|: A2 = A, [disjoint A1 & A2], A1 != set0 & A2 != set0].
Hypothesis one : forall past, one_of_each (plan past).

Section OneCohort.

Variable past : output.

(* Rings that touch the side B of A and have the value v, whoever of the ring has it. *)
Definition could_have A B (f : 'I_n -> L) t v :=
  #|[set l | (v \in t @: members A f l) && ~~ [disjoint members A f l & B]]|.

Definition pass A A1 A2 f t := [forall v, (m * could_have A A1 f t v <= #|A1|) && (m * could_have A A2 f t v <= #|A2|)].

Definition try A t (x : lot) : shown + {set 'I_n} * {set 'I_n} :=
  let f := ring_of (plan past) A t x.1 x.2 in
  if choose past A (counts A t) is Some (A1, A2) then
    if pass A A1 A2 f t then inr (A1, A2) else inl (groups A f t)
  else inl (groups A f t).

Lemma try_two : cuts_in_two try.
Proof.
move=> A t x A1 A2; rewrite /try; case at_A : (choose _ _ _) => [[B1 B2]|//].
by case: ifP => // _ [<- <-]; apply: two at_A.
Qed.

Section Moved.

Variables (A : {set 'I_n}) (t : table n V) (r : {perm 'I_n}) (f g : 'I_n -> L).
Hypothesis rA : stays r A.
Hypothesis along : forall x, g x = f (r x).

Lemma members_moved l x : (x \in members A g l) = (r x \in members A f l).
Proof. by rewrite !inE along (staysP rA). Qed.

Lemma values_moved l : moved t r @: members A g l = t @: members A f l.
Proof.
apply/setP=> v; apply/imsetP/imsetP => [[x + ->]|[x xf ->]].
  by rewrite members_moved => xf; exists (r x); rewrite ?ffunE.
by exists (r^-1 x); rewrite ?ffunE ?members_moved permKV.
Qed.

Lemma touch_moved l B : stays r B -> [disjoint members A g l & B] = [disjoint members A f l & B].
Proof.
move=> rB; apply/pred0P/pred0P => none x /=; apply/negP=> /andP[xf xB].
  by have /= := none (r^-1 x); rewrite members_moved -(staysP rB) permKV xf xB.
by have /= := none (r x); rewrite -members_moved (staysP rB) xf xB.
Qed.

Lemma members_kept l : stays r (members A f l) -> members A g l = members A f l.
Proof. by move=> same; apply/setP=> x; rewrite members_moved (staysP same). Qed.

End Moved.

Lemma try_sides : sides_only try act.
Proof.
move=> A t x r A1 A2; rewrite /try; case at_A : (choose _ _ _) => [[B1 B2]|//].
case: ifP => // passed [<- <-] r1 r2.
have rA : stays r A by have [<- _ _ _] := two at_A; rewrite /stays imsetU (eqP r1) (eqP r2).
rewrite counts_moved // at_A; set p := pass _ _ _ _ _.
suff -> : p = true by [].
rewrite /p -passed; apply: eq_forallb => v; congr (_ && _); congr (_ * _ <= _)%N;
  rewrite /could_have; congr #|pred_of_set _|; apply/setP=> l; rewrite !inE;
  rewrite (values_moved t rA (fun y => ring_of_moved (plan past) t x.1 x.2 y rA));
  by rewrite (touch_moved rA (fun y => ring_of_moved (plan past) t x.1 x.2 y rA)).
Qed.

Definition keeps r (s : shown) := [forall g in s, stays r g.1].

Lemma try_leaf : leaf_kept try act keeps.
Proof.
move=> A t x r s; rewrite /try => at_A.
pose f := ring_of (plan past) A t x.1 x.2.
have shows : s = groups A f t by move: at_A; case: (choose _ _ _) => [[A1 A2]|[<-] //]; case: ifP => // _ [<-].
move=> keep; have kept l : stays r (members A f l).
  move: keep; rewrite shows => /forall_inP /(_ (group A f t l)) -> //.
  by rewrite imset_f.
have rA : stays r A.
  by apply: stays_if => y yA; have := staysP (kept (f y)) y; rewrite !inE yA eqxx => /andP[].
have along := fun y => ring_of_moved (plan past) t x.1 x.2 y rA.
split=> //; pose g := ring_of (plan past) A (moved t r) x.1 (r * x.2).
have same l : members A g l = members A f l by exact: (members_kept rA along (kept l)).
have values l : moved t r @: members A g l = t @: members A f l by exact: (values_moved t rA along l).
have -> : groups A g (moved t r) = groups A f t by apply: eq_imset => l; rewrite /group values same.
rewrite counts_moved //; move: at_A; rewrite shows; case: (choose _ _ _) => [[A1 A2]|//].
have -> // : pass A A1 A2 g (moved t r) = pass A A1 A2 f t.
apply: eq_forallb => v; congr (_ && _); congr (_ * _ <= _)%N;
  by rewrite /could_have; congr #|pred_of_set _|; apply/setP=> l; rewrite !inE values same.
Qed.

(* What is true of every release: a group has different values, and they are those of its people; groups have nobody in common. *)
Definition sound A t (o : output) := forall a g, a \in o -> g \in a.2 ->
  [/\ g.1 \subset A, g.2 = t @: g.1, {in g.1 &, injective t} &
      forall b h, b \in o -> h \in b.2 -> ~~ [disjoint g.1 & h.1] -> g.1 = h.1].

Lemma groups_sound A t x : sound A t [:: (A, groups A (ring_of (plan past) A t x.1 x.2) t)].
Proof.
move=> a g; rewrite inE => /eqP -> /imsetP[l _ ->] /=; split=> //.
- by apply/subsetP=> y; rewrite inE => /andP[].
- move=> y z; rewrite !inE => /andP[yA /eqP yl] /andP[zA /eqP zl].
  by apply: (@rings_differ _ _ _ _ (plan past) A t x.1 x.2) => //; first [exact: one | exact: (etrans yl (esym zl))].
move=> b h; rewrite inE => /eqP -> /imsetP[l' _ ->] /pred0Pn[y] /=.
by rewrite !inE => /andP[/andP[_ /eqP <-] /andP[_ /eqP <-]].
Qed.

End OneCohort.

Lemma sound_cat A1 A2 t (o1 o2 : output) : [disjoint A1 & A2] -> sound A1 t o1 -> sound A2 t o2 -> sound (A1 :|: A2) t (o1 ++ o2).
Proof.
move=> dis sound1 sound2 a g; rewrite mem_cat => /orP[] ao ga.
  have [sub values inj apart] := sound1 _ _ ao ga; split=> //; first exact: subset_trans sub (subsetUl _ _).
  move=> b h; rewrite mem_cat => /orP[] bo hb; first exact: (apart b).
  have [sub' _ _ _] := sound2 _ _ bo hb.
  by rewrite (disjointWl sub (disjointWr sub' dis)).
have [sub values inj apart] := sound2 _ _ ao ga; split=> //; first exact: subset_trans sub (subsetUr _ _).
move=> b h; rewrite mem_cat => /orP[] bo hb; last exact: (apart b).
have [sub' _ _ _] := sound1 _ _ bo hb.
by rewrite disjoint_sym (disjointWl sub' (disjointWr sub dis)).
Qed.

Lemma run_sound past k A t lots : sound A t (run (try past) k A t lots).
Proof.
elim: k A => [//|k IH] A /=.
case at_A : (try past A t (lots A)) => [s|[A1 A2]]; last first.
  by have [<- dis _ _] := try_two at_A; apply: sound_cat.
have -> : s = groups A (ring_of (plan past) A t (lots A).1 (lots A).2) t; last exact: groups_sound.
by move: at_A; rewrite /try; case: (choose _ _ _) => [[A1 A2]|[<-] //]; case: ifP => // _ [<-].
Qed.

(* The groups of all cohorts, one after the other. *)
Fixpoint release (past : output) (cohorts : seq {set 'I_n}) t lots : output :=
  if cohorts is A :: rest then
    let of_cohort := run (try past) #|A| A t lots in of_cohort ++ release (past ++ of_cohort) rest t lots
  else [::].

Definition everybody (cohorts : seq {set 'I_n}) := \bigcup_(A <- cohorts) A.

Fixpoint apart (cohorts : seq {set 'I_n}) :=
  if cohorts is A :: rest then [disjoint A & everybody rest] && apart rest else true.

Lemma release_sound past cohorts t lots : apart cohorts -> sound (everybody cohorts) t (release past cohorts t lots).
Proof.
elim: cohorts past => [//|A rest IH] past /= /andP[dis /IH sound_rest].
by rewrite /everybody big_cons; apply: sound_cat => //; apply: run_sound.
Qed.

Lemma release_kept past cohorts t lots r :
  all (fun l => keeps r l.2) (release past cohorts t lots) ->
  release past cohorts (moved t r) (fun B => act r (lots B)) = release past cohorts t lots /\ all (stays r) cohorts.
Proof.
elim: cohorts past => [//|A rest IH] past /=; rewrite all_cat => /andP[first later].
have [same rA] := run_kept (@try_two past) (@try_sides past) (@try_leaf past) (leqnn _) first.
by rewrite same rA; have [-> ->] := IH _ later.
Qed.

Lemma run_same past k A t l1 l2 : l1 =1 l2 -> run (try past) k A t l1 = run (try past) k A t l2.
Proof.
move=> same; elim: k A => [//|k IH] A /=; rewrite same.
by case: (try past A t (l2 A)) => [//|[A1 A2]]; rewrite !IH.
Qed.

Lemma release_same past cohorts t l1 l2 : l1 =1 l2 -> release past cohorts t l1 = release past cohorts t l2.
Proof. by move=> same; elim: cohorts past => [//|A rest IH] past /=; rewrite IH (run_same _ _ _ _ same). Qed.

Section TheoremB.

Local Open Scope ring_scope.

Variables (R : realFieldType) (prior : table n V -> R) (cohorts : seq {set 'I_n}).
Hypothesis cohorts_apart : apart cohorts.

(* Ways to give out the values of a cohort are equally likely before the releases. *)
Hypothesis exchangeable : forall t r, all (stays r) cohorts -> prior (moved t r) = prior t.

(* Every part has lots of its own. All lots are drawn uniformly. *)
Definition all_lots := {ffun {set 'I_n} -> lot}.
Definition state := (table n V * all_lots)%type.
Definition weight (s : state) : R := prior s.1 / #|{: all_lots}|%:R.
Definition published (s : state) : output := release [::] cohorts s.1 s.2.

(* The reader sees the groups o, and knows the values of the people J. *)
Variables (o : output) (J : {set 'I_n}) (known : table n V).
Definition knows := [pred s : state | (published s == o) && [forall x in J, s.1 x == known x]].

Variables (leaf : {set 'I_n} * shown) (g : {set 'I_n} * {set V}) (x : 'I_n) (v : V).
Hypothesis leaf_in : leaf \in o.
Hypothesis g_in : g \in leaf.2.
Hypothesis x_in : x \in g.1.
Hypothesis x_unknown : x \notin J.
Hypothesis v_in : v \in g.2.
Hypothesis v_left : v \notin known @: (g.1 :&: J).

Definition other := {y | y \in g.1 :\: J}.

Definition exchanged (y : other) (s : state) : state :=
  (moved s.1 (tperm x (val y)), [ffun B => act (tperm x (val y)) (s.2 B)]).

Lemma exchanged_inj y : injective (exchanged y).
Proof.
move=> [t1 l1] [t2 l2] [/moved_inj -> same]; congr (_, _); apply/ffunP=> B.
move/ffunP/(_ B): same; rewrite !ffunE /act; case: (l1 B) (l2 B) => [z1 q1] [z2 q2] /= [-> /mulgI ->] //.
Qed.

Lemma sound_o s : knows s -> sound (everybody cohorts) s.1 o.
Proof. by case/andP => /eqP <- _; apply: release_sound. Qed.

Lemma exchanged_same (y : other) s : knows s ->
  published (exchanged y s) = o /\ all (stays (tperm x (val y))) cohorts.
Proof.
move=> known_s; have sound := sound_o known_s; case/andP: known_s => /eqP is_o _.
have /setDP[yg _] := valP y; have [sub _ _ apart_g] := sound _ _ leaf_in g_in.
suff kept : all (fun l => keeps (tperm x (val y)) l.2) (published s).
  have [same stay] := release_kept kept; split=> //.
  by rewrite -is_o -[RHS]same /published; apply: release_same => B /=; rewrite ffunE.
rewrite is_o; apply/allP=> b bo; apply/forall_inP=> h hb; apply: stays_if => z zh.
have in_g : z \in g.1 -> g.1 = h.1 by move=> zg; apply: (apart_g b) => //; apply/pred0Pn; exists z; rewrite /= zg zh.
by case: tpermP zh in_g => [->|->|//] zh in_g; rewrite -in_g.
Qed.

Lemma exchanged_knows (y : other) s : knows s -> knows (exchanged y s).
Proof.
move=> known_s; have [same _] := exchanged_same y known_s.
case/andP: known_s => _ /forall_inP all_known; apply/andP; split; first by rewrite same.
apply/forall_inP=> z zJ; rewrite ffunE tpermD ?all_known //; first by apply: contraNneq x_unknown => ->.
by have /setDP[_] := valP y; apply: contraNneq => ->.
Qed.

Lemma exchanged_weight (y : other) s : knows s -> weight (exchanged y s) = weight s.
Proof. by move=> known_s; rewrite /weight exchangeable //; have [] := exchanged_same y known_s. Qed.

(* Exactly one of the others has the value v. *)
Lemma one_has_it s : knows s -> #|[pred y : other | (exchanged y s).1 x == v]| = 1%N.
Proof.
move=> known_s; have [_ values inj _] := sound_o known_s leaf_in g_in.
move: v_in; rewrite values => /imsetP[z zg is_v].
have zJ : z \notin J.
  apply: contra v_left => zJ; apply/imsetP; exists z; first by rewrite inE zg zJ.
  by case/andP: known_s => _ /forall_inP /(_ z zJ) /eqP <-.
have z_other : z \in g.1 :\: J by rewrite inE zJ zg.
rewrite -(card1 (exist _ z z_other : other)); apply: eq_card => y; rewrite !inE ffunE tpermL is_v.
apply/eqP/eqP => [same|-> //]; apply: val_inj; apply: inj => //.
by have /setDP[] := valP y.
Qed.

Theorem theorem_B : 0 < mass weight knows -> posterior weight knows [pred s : state | s.1 x == v] = #|g.1 :\: J|%:R^-1.
Proof.
move=> some; rewrite -card_sig; apply: (exchange_exactly (move := exchanged)) => //.
- by move=> y s1 s2 _ _; apply: exchanged_inj.
- exact: exchanged_knows.
- exact: exchanged_weight.
- exact: one_has_it.
Qed.

End TheoremB.

End Participants.
